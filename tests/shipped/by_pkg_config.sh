#!/bin/sh
# by_pkg_config.sh COMPILER PREFIX SOURCE OUTPUT [FLAG...]: compiles and runs a program with what pkg-config says of elidex.
set -eu
compiler=$1 prefix=$2 source=$3 output=$4
shift 4
pc=$(dirname "$(find "$prefix" -name elidex.pc)")
export PKG_CONFIG_PATH="$pc" LD_LIBRARY_PATH="${pc%/pkgconfig}"
# shellcheck disable=SC2046
"$compiler" -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror "$@" "$source" -o "$output" \
  $(pkg-config --cflags --libs elidex)
"$output"
