#!/bin/sh
# by_pkg_config.sh COMPILER PREFIX SOURCE OUTPUT [FLAG...]: compiles and runs a program with what pkg-config says of elidex.
set -eu
compiler=$1 prefix=$2 source=$3 output=$4
shift 4
pc=$(dirname "$(find "$prefix" -name elidex.pc)")
export PKG_CONFIG_PATH="$pc" LD_LIBRARY_PATH="${pc%/pkgconfig}"
for flag in "$@"; do
  if [ "$flag" = -static ]; then static=--static; fi
done
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror "$@" "$source" -o "$output" \
  $(pkg-config ${static-} --cflags --libs elidex)
"$output"
