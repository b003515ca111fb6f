# Compresses manual pages, as Debian's packages have them. CPack runs this on the files that it is about to pack.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*.1 ${CPACK_TEMPORARY_DIRECTORY}/*.8)
list(FILTER pages INCLUDE REGEX /man/man[18]/)
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
