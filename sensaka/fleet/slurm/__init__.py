"""The Slurm clusters of the fleet: who submits what, how it ends, what it makes the cards do."""
