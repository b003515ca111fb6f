# Compiler settings and functions for this project's targets.

# Sets warnings, sanitizers and the include root of a target. Called for each target.
function(spexd_target target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-psabi -fno-math-errno)
  if(SPEXD_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SPEXD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${SPEXD_SANITIZE})
  endif()
  # Checks of each pointer take a third of the compilation time. The address sanitizer stops at null pointers in any case.
  set(core_folder ${PROJECT_SOURCE_DIR}/core)
  cmake_path(IS_PREFIX core_folder "${CMAKE_CURRENT_SOURCE_DIR}" in_core)
  if(SPEXD_SANITIZE MATCHES undefined AND NOT in_core)
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr)
  endif()
endfunction()

# spexd_unity(target n): with SPEXD_UNITY, compiles the target's sources in units of n files, so that their headers are read
# once.
function(spexd_unity target files)
  if(SPEXD_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  endif()
endfunction()

# spexd_library(NAME name SOURCES a.cc ... DEPENDS target ... [APART]): a static library. APART: its sources cannot share a
# unit.
function(spexd_library)
  cmake_parse_arguments(ARG "APART" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPENDS})
  spexd_target(${ARG_NAME})
  if(NOT ARG_APART)
    spexd_unity(${ARG_NAME} 16)
  endif()
endfunction()

# spexd_optimise_little(target): shortens the compilation of code that runs once or mostly waits.
function(spexd_optimise_little target)
  if(NOT SPEXD_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# The target of a build with sanitizers: the programs of its tests.
add_custom_target(sanitized_tests)

# Sets `result` to whether this build has a test with these labels (docs/development.md). Builds with sanitizers omit the second
# tier and tests labelled `plain`; the thread sanitizer also omits tests with one thread and tests labelled `sequential`.
function(spexd_has_test result labels)
  set(has TRUE)
  if(SPEXD_SANITIZE AND labels MATCHES "system|plain")
    set(has FALSE)
  elseif(SPEXD_SANITIZE MATCHES thread AND (labels MATCHES "sequential" OR NOT labels MATCHES "service|concurrent"))
    set(has FALSE)
  endif()
  set(${result} ${has} PARENT_SCOPE)
endfunction()

# Seconds that a long test takes. ctest begins with the longest tests, so that none is left alone at the end. Once ctest has
# run, it uses its own times. For a test in shards: seconds of a shard.
function(spexd_long_test name seconds)
  foreach(entry ${name} ${name}_1 ${name}_2 ${name}_3 ${name}_4)
    if(TEST ${entry})
      set_tests_properties(${entry} PROPERTIES COST ${seconds})
    endif()
  endforeach()
endfunction()

# spexd_test_program(NAME name DEPENDS target ... [SOURCES a.cc ...] [UNOPTIMISED]): a GoogleTest program for the tests that
# spexd_test(PROGRAM name) adds. UNOPTIMISED is for tests that mostly wait: optimised, they take up to twice as long to compile.
# The thread sanitizer ignores it: gRPC's inline functions, if not inlined, would be instrumented, and the sanitizer does not
# see how gRPC itself, which is not instrumented, orders its threads.
function(spexd_test_program)
  cmake_parse_arguments(ARG "UNOPTIMISED" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES} $<TARGET_OBJECTS:spexd_test_main>)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} absl::strings GTest::gmock)
  spexd_target(${ARG_NAME})
  spexd_unity(${ARG_NAME} 12)
  # Units name their files by full paths. Shorter paths are easier to read in failures, and let ccache use objects of other
  # clones.
  target_compile_options(${ARG_NAME} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(ARG_UNOPTIMISED AND NOT SPEXD_SANITIZE MATCHES thread)
    target_compile_options(${ARG_NAME} PRIVATE -O0)
  endif()
endfunction()

# spexd_test(NAME name SOURCES a.cc ... [PROGRAM program | DEPENDS target ...] [LABELS l ...] [ARGUMENTS a ...] [TIMEOUT s]
#            [SYSTEM_CASES filter] [IDLE_MACHINE_CASES filter] [SHARDS n]): one ctest entry, of its own program with the
# dependencies DEPENDS, or of a program that it shares with others.
# With SHARDS the cases are divided among n entries, NAME_1 to NAME_n, so that none takes more than a minute.
# Tests with the label `system` are the second tier (docs/development.md). Cases that match SYSTEM_CASES, a GoogleTest filter,
# belong to it and are removed from the first tier. Cases that match IDLE_MACHINE_CASES run in both tiers, in the second with
# limits of time (tests/support/idle_machine.h). Both kinds are in an extra entry, NAME_system.
function(spexd_test)
  cmake_parse_arguments(ARG "" "NAME;PROGRAM;TIMEOUT;SYSTEM_CASES;IDLE_MACHINE_CASES;SHARDS" "SOURCES;DEPENDS;LABELS;ARGUMENTS" ${ARGN})
  spexd_has_test(has_test "${ARG_LABELS}")
  if(NOT has_test)
    return()
  endif()
  set(program ${ARG_PROGRAM})
  set(chosen "")
  if(program)
    target_sources(${program} PRIVATE ${ARG_SOURCES})
    foreach(source IN LISTS ARG_SOURCES)
      cmake_path(GET source FILENAME file)
      list(APPEND chosen --source=${file})
    endforeach()
  else()
    set(program ${ARG_NAME})
    set(unoptimised "")
    if("service" IN_LIST ARG_LABELS AND NOT ARG_IDLE_MACHINE_CASES)
      set(unoptimised UNOPTIMISED)
    endif()
    spexd_test_program(NAME ${program} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} ${unoptimised})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_dependencies(sanitized_tests ${program})
  if((ARG_SYSTEM_CASES OR ARG_IDLE_MACHINE_CASES) AND NOT SPEXD_SANITIZE)
    # Cases that are chosen by name need no --source, which selects all cases of a file.
    set(cases "--gtest_filter=${ARG_SYSTEM_CASES}:${ARG_IDLE_MACHINE_CASES}")
    if(ARG_IDLE_MACHINE_CASES STREQUAL "*")
      set(cases ${chosen})
    endif()
    add_test(NAME ${ARG_NAME}_system COMMAND ${program} ${ARG_ARGUMENTS} ${cases})
    spexd_test_properties(${ARG_NAME}_system 3600 "${ARG_LABELS};system")
    set_tests_properties(${ARG_NAME}_system PROPERTIES RUN_SERIAL ON)
    set_property(TEST ${ARG_NAME}_system APPEND PROPERTY ENVIRONMENT SPEXD_IDLE_MACHINE=1)
  endif()
  if(ARG_SYSTEM_CASES)
    list(APPEND chosen "--gtest_filter=-${ARG_SYSTEM_CASES}")
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(entry ${ARG_NAME})
    if(ARG_SHARDS GREATER 1)
      string(APPEND entry _${shard})
    endif()
    add_test(NAME ${entry} COMMAND ${program} ${ARG_ARGUMENTS} ${chosen})
    spexd_test_properties(${entry} ${ARG_TIMEOUT} "${ARG_LABELS}")
    math(EXPR index "${shard} - 1")
    set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${index})
  endforeach()
endfunction()

# Sets the time limit, the labels and the environment of an entry of spexd_test.
function(spexd_test_properties name timeout labels)
  # In tests OpenBLAS has no threads of its own: they wait in a busy loop, which takes the other tests' cores, and the thread
  # sanitizer does not see how they wait.
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${timeout}
    LABELS "${labels}"
    ENVIRONMENT "OPENBLAS_NUM_THREADS=1;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0;UBSAN_OPTIONS=print_stacktrace=1;SPEXD_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
