"""What pre-training is worth where plain text tells what few labels do not."""
