"""What happens because a person asked: verbs on jobs and keys, each one guarded transaction."""
