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

# What the sanitizers are to see: the tests of the first tier without whole frames, which would take minutes there and run nothing
# that a bundle does not; of these, for the thread sanitizer, the service and all else that runs in threads.
add_custom_target(sanitized_tests)
add_custom_target(threaded_tests)

# The tests that take longest, in seconds: ctest begins with them, so that none is left alone at the end. Where ctest has run
# before, it knows better. Of a test in shards, those of a shard.
function(spexd_long_test name seconds)
  foreach(entry ${name} ${name}_1 ${name}_2 ${name}_3 ${name}_4)
    if(TEST ${entry})
      set_tests_properties(${entry} PROPERTIES COST ${seconds})
    endif()
  endforeach()
endfunction()

# spexd_test(NAME name SOURCES a.cc ... DEPENDS target ... [LABELS l ...] [ARGUMENTS a ...] [TIMEOUT s]
#            [SYSTEM_CASES filter] [IDLE_MACHINE_CASES filter] [SHARDS n]): a GoogleTest program, one ctest entry.
# With SHARDS its cases are divided among n entries, NAME_1 to NAME_n, so that none takes more than a minute.
# Tests with the label `system` are the second tier (docs/development.md). Cases that match SYSTEM_CASES, a filter of GoogleTest's,
# belong there and are taken out of the first tier; those that match IDLE_MACHINE_CASES run in both, in the second with limits of
# time (tests/support/idle_machine.h). They are an entry of their own, NAME_system.
function(spexd_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT;SYSTEM_CASES;IDLE_MACHINE_CASES;SHARDS" "SOURCES;DEPENDS;LABELS;ARGUMENTS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  spexd_target(${ARG_NAME})
  # Tests of services wait and do not compute, but for those with limits of time: optimised, they take up to twice as long to
  # compile, most of all for the address sanitizer. Not for the thread sanitizer: gRPC's inline functions, not inlined, would be
  # instrumented, and it does not see how gRPC itself, which is not, orders its threads.
  if("service" IN_LIST ARG_LABELS AND NOT ARG_IDLE_MACHINE_CASES AND NOT SPEXD_SANITIZE MATCHES thread)
    target_compile_options(${ARG_NAME} PRIVATE -O0)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT "system" IN_LIST ARG_LABELS AND NOT "whole-frame" IN_LIST ARG_LABELS)
    add_dependencies(sanitized_tests ${ARG_NAME})
    if("service" IN_LIST ARG_LABELS OR "concurrent" IN_LIST ARG_LABELS)
      add_dependencies(threaded_tests ${ARG_NAME})
    endif()
  endif()
  set(filter "")
  if(ARG_SYSTEM_CASES)
    set(filter "--gtest_filter=-${ARG_SYSTEM_CASES}")
  endif()
  if(ARG_SYSTEM_CASES OR ARG_IDLE_MACHINE_CASES)
    add_test(NAME ${ARG_NAME}_system
      COMMAND ${ARG_NAME} ${ARG_ARGUMENTS} "--gtest_filter=${ARG_SYSTEM_CASES}:${ARG_IDLE_MACHINE_CASES}")
    spexd_test_properties(${ARG_NAME}_system 3600 "${ARG_LABELS};system")
    set_tests_properties(${ARG_NAME}_system PROPERTIES RUN_SERIAL ON)
    set_property(TEST ${ARG_NAME}_system APPEND PROPERTY ENVIRONMENT SPEXD_IDLE_MACHINE=1)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(entry ${ARG_NAME})
    if(ARG_SHARDS GREATER 1)
      string(APPEND entry _${shard})
    endif()
    add_test(NAME ${entry} COMMAND ${ARG_NAME} ${ARG_ARGUMENTS} ${filter})
    spexd_test_properties(${entry} ${ARG_TIMEOUT} "${ARG_LABELS}")
    math(EXPR index "${shard} - 1")
    set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${index})
  endforeach()
endfunction()

# Sets the time limit, the labels and the environment of an entry of spexd_test.
function(spexd_test_properties name timeout labels)
  # The thread sanitizer does not see how OpenBLAS's threads wait for each other: it has none there.
  if(SPEXD_SANITIZE MATCHES thread)
    set(one_blas_thread "OPENBLAS_NUM_THREADS=1;")
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${timeout}
    LABELS "${labels}"
    ENVIRONMENT "${one_blas_thread}TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0;UBSAN_OPTIONS=print_stacktrace=1;SPEXD_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
