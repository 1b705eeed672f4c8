"""What several datasets read: archives, annotations of the field, drawings."""
