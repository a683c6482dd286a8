"""What routes are written with: strict models, rights, pages, answers, errors. The server in `api` has all routes."""
