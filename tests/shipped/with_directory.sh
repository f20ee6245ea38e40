#!/bin/sh
# with_directory.sh COMMAND...: appends the path of an empty directory to the command, runs it and removes the directory.
directory=$(mktemp -d) || exit 1
"$@" "$directory"
status=$?
rm -rf "$directory"
exit $status
