"""Corrections of workflows' code: a hook is called after a failure, and its answer is kept, checked and deployed.

What must stay true:
- a correction is requested three times at most between two commits of a handler; then a person decides;
- an answer is stored before it is used, and used only if it loads as a version of the same workflow;
- no code of an answer runs before it is accepted: until then it is parsed and compiled, nothing more. Then it is loaded
  in another process, with a clean environment, and deployed only if that succeeds;
- unless `auto_fix_apply` is set, nothing is deployed that no person approved.
"""
