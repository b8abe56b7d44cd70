"""When jobs will start: the queue of an instant in many futures, and how often such forecasts were right."""
