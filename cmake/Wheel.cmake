# The parts that are linked into a wheel's programs, so that they run on other distributions than the one that built them.
if(NOT SPEXD_WHEEL)
  return()
endif()

# GCC 12 calls std::condition_variable::wait of its own libstdc++, GLIBCXX_3.4.30. RHEL 9 and Ubuntu 22.04 lack that version;
# they have all other symbols that are used, in glibc 2.34 and GCC 11.
foreach(target spex spexd spexd_native spexd_cuda)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/condition_variable_wait.cc)
    target_link_options(${target} PRIVATE -Wl,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
  endif()
endforeach()
