#!/bin/sh
# The agent of this example: reads what it is asked and answers. A real one would be claude, codex, gemini or opencode.
asked=$(cat)
case $WAKEFUL_SCHEDULE in
wake) echo "I looked around. Last line I was asked: $(printf '%s' "$asked" | tail -n 1)" ;;
*) echo "$WAKEFUL_AGENT did $WAKEFUL_SCHEDULE: $(printf '%s\n' "$asked" | grep -E '^(title|\[payload\]):' || echo nothing special)" ;;
esac
