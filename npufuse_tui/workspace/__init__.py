"""Sessions on disk: state, journal and lock; the branch and the worktrees. The person's checkout is only read."""
