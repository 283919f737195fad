"""What people look at: rows made from records, one grammar of questions, charts."""
