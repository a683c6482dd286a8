#!/bin/sh
# The same from the command line: add, run by hand, read what it said. No server is needed for that.
set -eu
folder=$(mktemp -d)
export WAKEFUL_DB="$folder/wakeful.db"

wakeful add backup --cron "0 2 * * *" --tz Europe/Berlin -- echo "42 files saved" > "$folder/told" 2>&1
wakeful run backup 2> "$folder/told"
wakeful show backup | grep -E "^(runs|command|status) "
wakeful runs backup --json | grep outcome
rm -r "$folder"

# Output:
# 42 files saved
# runs     every day at 02:00, Europe/Berlin
# command  echo '42 files saved'
# status   idle
#     "outcome": "success",
