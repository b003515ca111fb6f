// The parts of the module spexd._native.
#ifndef SPEXD_PYTHON_NATIVE_BIND_H_
#define SPEXD_PYTHON_NATIVE_BIND_H_

#include <nanobind/nanobind.h>

namespace spexd::python {

void BindFrames(nanobind::module_& module);   // frames, their files and headers
void BindJobs(nanobind::module_& module);     // jobs and their PSFs
void BindEngines(nanobind::module_& module);  // engines; after frames and jobs
void BindProducts(
    nanobind::module_& module);  // sky, velocities and redshifts of frames; after frames and engines
void BindSpectra(nanobind::module_& module);  // spectra of targets in several arms; after frames and products
void BindTraces(nanobind::module_& module);  // trace shifts; after frames and jobs
void BindSums(nanobind::module_& module);    // coadds and components of several frames; after frames

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_BIND_H_
