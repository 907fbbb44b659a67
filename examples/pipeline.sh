#!/usr/bin/env bash
# Two programs as agents, one after the other: each ask is tracked, and only answers go to standard output.
set -euo pipefail

scout agent register upper --command 'tr a-z A-Z' >/dev/null
scout agent register count --command 'wc -w' >/dev/null
loud=$(scout ask @upper 'make this loud')
printf '%s\n' "$loud"
scout ask @count "$loud"
