"""Which node has which version of a workflow's code, and whose version is the deployed one."""
