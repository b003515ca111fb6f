# Writes the header that names the commit of the sources, if the name has changed. It runs at each build (core/CMakeLists.txt).
#
#   cmake -DSOURCE=folder -DOUTPUT=header [-DCOMMIT=name] -P WriteCommit.cmake
#
# The name is COMMIT if given, else the output of git for the folder; in an unpacked archive, what `git archive` wrote
# into archive_commit.txt; else nothing.
if(NOT COMMIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE COMMIT ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT COMMIT AND EXISTS ${SOURCE}/cmake/archive_commit.txt)
  file(STRINGS ${SOURCE}/cmake/archive_commit.txt COMMIT LIMIT_COUNT 1)
  if(COMMIT MATCHES "Format")  # git archive has not replaced the placeholder
    set(COMMIT "")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[// Made by WriteCommit.cmake.
#define SPEXD_COMMIT "@COMMIT@"
]])
