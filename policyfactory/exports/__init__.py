"""From a policy to what a program or a scheduler loads; one module a target."""
