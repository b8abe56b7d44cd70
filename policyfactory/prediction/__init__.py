"""What is known of a job from its user's past: features, models, predictions."""
