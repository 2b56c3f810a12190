"""The process that owns one running job, and what is done about jobs whose agent died."""
