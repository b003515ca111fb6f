# How targets of this project are compiled.

# Warnings, sanitizers and the include root of one target; called for each.
function(spexd_target target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-psabi -fno-math-errno)
  if(SPEXD_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SPEXD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${SPEXD_SANITIZE})
  endif()
endfunction()

# spexd_library(NAME name SOURCES a.cc ... DEPENDS target ...): a static library.
function(spexd_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPENDS})
  spexd_target(${ARG_NAME})
endfunction()

# The tests of the service and of all else that runs in threads: what the thread sanitizer is to see. Whole frames would take
# minutes there and run nothing that a bundle does not.
add_custom_target(threaded_tests)

# The tests that take longest, in seconds: ctest begins with them, so that none is left alone at the end. Where ctest has run
# before, it knows better.
function(spexd_long_test name seconds)
  set_tests_properties(${name} PROPERTIES COST ${seconds})
endfunction()

# spexd_test(NAME name SOURCES a.cc ... DEPENDS target ... [LABELS l ...] [ARGUMENTS a ...] [TIMEOUT s] [CONFIGURATIONS c]): a GoogleTest program, one ctest entry.
# With CONFIGURATIONS it is run by `ctest -C c` alone.
function(spexd_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT;CONFIGURATIONS" "SOURCES;DEPENDS;LABELS;ARGUMENTS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  spexd_target(${ARG_NAME})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(("service" IN_LIST ARG_LABELS OR "concurrent" IN_LIST ARG_LABELS) AND NOT "whole-frame" IN_LIST ARG_LABELS)
    add_dependencies(threaded_tests ${ARG_NAME})
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} ${ARG_ARGUMENTS} CONFIGURATIONS ${ARG_CONFIGURATIONS})
  # The thread sanitizer does not see how OpenBLAS's threads wait for each other: it has none there.
  if(SPEXD_SANITIZE MATCHES thread)
    set(one_blas_thread "OPENBLAS_NUM_THREADS=1;")
  endif()
  set_tests_properties(${ARG_NAME} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT}
    LABELS "${ARG_LABELS}"
    ENVIRONMENT "${one_blas_thread}TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0;UBSAN_OPTIONS=print_stacktrace=1;SPEXD_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
