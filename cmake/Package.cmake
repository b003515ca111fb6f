# The CMake package for users of the C++ client library, component dev: targets spexd::client and spexd::proto
# (docs/install.md). Included after all targets exist.
include(CMakePackageConfigHelpers)

set(SPEXD_INSTALL_HEADERS ${CMAKE_INSTALL_INCLUDEDIR}/spexd)
set(SPEXD_INSTALL_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/spexd)

# Adds `target` and the project's libraries that it links to the list `result`.
function(spexd_collect_libraries target result)
  if(target IN_LIST ${result})
    return()
  endif()
  list(APPEND ${result} ${target})
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(library IN LISTS linked)
    if(library MATCHES "^spexd_")
      spexd_collect_libraries(${library} ${result})
    endif()
  endforeach()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

set(libraries)
spexd_collect_libraries(spexd_client libraries)
foreach(library IN LISTS libraries)
  string(REPLACE spexd_ "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
target_compile_features(spexd_client PUBLIC cxx_std_20)
install(TARGETS ${libraries} EXPORT spexd_libraries
  ARCHIVE DESTINATION ${SPEXD_INSTALL_MODULES} COMPONENT dev
  INCLUDES DESTINATION ${SPEXD_INSTALL_HEADERS})
install(EXPORT spexd_libraries NAMESPACE spexd:: FILE spexdTargets.cmake DESTINATION ${SPEXD_INSTALL_PACKAGE} COMPONENT dev)

configure_package_config_file(cmake/spexdConfig.cmake.in ${PROJECT_BINARY_DIR}/install/spexdConfig.cmake
  INSTALL_DESTINATION ${SPEXD_INSTALL_PACKAGE} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/spexdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/install/spexdConfig.cmake ${PROJECT_BINARY_DIR}/install/spexdConfigVersion.cmake
  DESTINATION ${SPEXD_INSTALL_PACKAGE} COMPONENT dev)

# Headers of the interface and the headers that they include, in the folders by which the sources include them:
# "client/job.h", "core/model/frame.h", "spexd/v1/jobs.pb.h". The consumer in tests/install compiles each.
foreach(header
    client/analysis/analysis_client.h client/analysis/analysis_job.h client/connection/connection.h client/detached_client.h client/extract_client.h client/connection/grpc_connection.h client/job.h
    client/psf_list.h client/upload/psf_upload.h client/connection/retry_policy.h client/connection/server_address.h
    client/balance/server_balancer.h
    client/connection/server_directory.h
    client/balance/server_speeds.h
    core/base/array.h core/base/shared_array.h core/base/memory/array_allocator.h core/base/host_device.h core/base/memory/huge_pages.h core/base/memory/memory_account.h
    core/extract/device_spectra.h core/extract/engine.h core/extract/stage.h core/fits/moved_psf_writer.h core/fits/readers.h core/fits/hdu/source.h core/fits/writers.h
    core/frame/bundle_spectra.h core/frame/fit_quality.h core/frame/frame_assembler.h core/frame/job.h core/frame/summary.h core/job/job_sources.h core/job/job_traces.h core/job/raw_image.h core/job/run_job.h
    core/analysis/analyser/analyser.h core/analysis/edge_bins.h core/analysis/lines/emission_lines.h
    core/analysis/sky/sky.h
    core/analysis/usable_spectra.h core/analysis/velocity/shared/fit_steps.h core/analysis/velocity/shared/small_matrix.h
    core/analysis/velocity/shared/template_cell.h core/analysis/velocity/template_library.h core/analysis/velocity/velocity.h
    core/analysis/velocity/template_preparations.h core/base/threads/mutex.h core/base/threads/parallel.h
    core/products/analyse.h core/products/inputs/fiberflat.h
    core/products/joint/joint_product.h core/products/joint/redrock_table.h core/products/joint/row_selection.h
    core/model/coded_image.h core/model/fibre_range.h core/model/frame.h core/model/image.h core/model/mask_rule.h
    core/model/psf.h core/model/spots/gauss_hermite.h core/model/spots/sampled.h core/model/spots/sampled_formula.h core/model/spots/spot_model.h core/model/spots/stamp.h core/model/target_spectra.h core/model/traces/trace_shifts.h core/model/traces/traces.h core/model/truth.h core/model/wavelength_grid.h
    core/traces/shifts/options.h core/traces/shifts/reference.h proto/assembler/job_outcome.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${SPEXD_INSTALL_HEADERS}/${folder} COMPONENT dev)
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/spexd DESTINATION ${SPEXD_INSTALL_HEADERS} COMPONENT dev FILES_MATCHING PATTERN "*.pb.h")
# For clients in other languages.
install(DIRECTORY proto/spexd DESTINATION ${SPEXD_INSTALL_DATA}/proto COMPONENT dev FILES_MATCHING PATTERN "*.proto")
