"""The worth of pre-training where plain text tells what few labels do not."""
