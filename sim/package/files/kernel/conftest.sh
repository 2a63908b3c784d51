#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
# conftest.sh CC ARCH SOURCES OUTPUT TEST [just_msg|full_output]: looks whether the modules can be built for a kernel. The arguments
# are those of NVIDIA's script; of its tests this one has cc_sanity_check and cc_version_check.
cc=$1
output=$4
test=$5
level=${6:-full_output}

# Of this branch: whether another compiler than the kernel's is an error or a warning.
mismatch_status=@CC_MISMATCH_STATUS@

case $test in
  cc_sanity_check)
    echo 'int gantry_conftest(void) { return 0; }' | $cc -x c -c -o /dev/null - 2>/dev/null && exit 0
    echo "The compiler ($cc) cannot create object files. Install one, or name another with the CC environment variable."
    exit 1
    ;;
  cc_version_check)
    [ -z "${IGNORE_CC_MISMATCH:-}" ] || exit 0
    kernel=""
    for file in "$output/include/generated/autoconf.h" "$output/.config"; do
      [ -r "$file" ] || continue
      kernel=$(sed -n -E 's/^(#define )?CONFIG_GCC_VERSION[ =]([0-9]+)[0-9]{4}$/\2/p' "$file" | head -n 1)
      [ -z "$kernel" ] || break
    done
    ours=$($cc -dumpversion 2>/dev/null | cut -d. -f1)
    # Another kind of compiler, or nothing to compare with.
    [ -n "$ours" ] && [ -n "$kernel" ] && [ "$kernel" -gt 0 ] || exit 0
    [ "$ours" != "$kernel" ] || exit 0
    [ "$mismatch_status" -eq 0 ] && warning="Warning: " || warning=""
    if [ "$level" = just_msg ]; then
      echo "${warning}The kernel was built with gcc version $kernel, but the current compiler version is $cc $ours."
    else
      echo
      echo "${warning}Compiler version check failed:"
      echo
      echo "The kernel was compiled by gcc version $kernel; the compiler used here, $cc, has version $ours."
      echo "Set the CC environment variable to the compiler that built the kernel, or set the IGNORE_CC_MISMATCH"
      echo "environment variable to \"1\" to build with this one."
      echo
      [ "$mismatch_status" -eq 0 ] && echo "*** Failed CC version check. ***" || echo "*** Failed CC version check. Bailing out! ***"
      echo
    fi
    exit $mismatch_status
    ;;
  *)
    echo "conftest.sh: there is no test $test" >&2
    exit 1
    ;;
esac
