"""Grid Engine: urgencies where they can express the policy, a submission verifier elsewhere."""
