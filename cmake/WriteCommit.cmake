# Writes the header that names the commit of the sources, if it changed: run at each build (core/CMakeLists.txt).
#
#   cmake -DSOURCE=folder -DOUTPUT=header [-DCOMMIT=name] -P WriteCommit.cmake
#
# The name is COMMIT where it is given, else what git says of the folder; of an unpacked archive, what `git archive` wrote
# into archive_commit.txt; else nothing.
if(NOT COMMIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE COMMIT ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT COMMIT AND EXISTS ${SOURCE}/cmake/archive_commit.txt)
  file(STRINGS ${SOURCE}/cmake/archive_commit.txt COMMIT LIMIT_COUNT 1)
  if(COMMIT MATCHES "Format")  # nobody has replaced it
    set(COMMIT "")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[// Made by WriteCommit.cmake.
#define SPEXD_COMMIT "@COMMIT@"
]])
