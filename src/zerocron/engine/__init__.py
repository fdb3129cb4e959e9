"""What happens because time passed. One small file each; `run` drives them."""
