"""Images: made small, proposed as pairs, laid upon each other and judged. Only `thumbs` decodes files."""
