# SPDX-License-Identifier: Apache-2.0
# Run by each build (cmake -D SOURCE=... -D OUT=... -P): the commit that is being built, in a header that changes only
# when the commit does. The date is the commit's, so that two builds of it are equal.
function(ask_git out)
  set(answer "unknown")
  execute_process(COMMAND git -C ${SOURCE} ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0 AND text)
    set(answer "${text}")
  endif()
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()

ask_git(revision rev-parse HEAD)
ask_git(date log -1 --format=%cI)
set(text "#pragma once\n#define GANTRY_BUILD_REVISION \"${revision}\"\n#define GANTRY_BUILD_DATE \"${date}\"\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
