// A job's inputs and where they come from.
#ifndef SPEXD_CORE_JOB_JOB_SOURCES_H_
#define SPEXD_CORE_JOB_JOB_SOURCES_H_

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"
#include "core/job/raw_image.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/traces/shifts/reference.h"

namespace spexd {

// An image in the caller's arrays, which must stay unchanged until the job has ended.
struct ImageArrays {
  ImagePlanes planes;
  std::vector<std::string> cards;  // 80 characters each
};

// A job's inputs, opened but not decoded. One of image, raw_image and arrays is set, and one or both of psf
// and loaded_psf.
struct JobSources {
  std::string image_name, psf_name;   // names for messages, and for the frame's header
  std::optional<Source> image;        // the image as a file
  std::optional<RawImage> raw_image;  // the image as bytes
  std::optional<ImageArrays> arrays;
  std::optional<Source> psf;              // the PSF as a file
  std::shared_ptr<const Psf> loaded_psf;  // the PSF in memory, preferred over the file
  std::optional<Source> fibermap;         // none: the image file has it
  // The reference for jobs that measure trace shifts. Null: y is measured between fibres only.
  std::shared_ptr<const ReferenceSpectrum> trace_reference;
  std::string trace_reference_name;
};

// A job's inputs as files of this machine, or as values that take their place.
struct JobFiles {
  std::string image = "";                  // path, or a name for `arrays`
  std::optional<ImageArrays> arrays = {};  // an image in memory; none: the file is opened
  std::string psf = "";                    // path, or a name for the PSF of load_psf
  std::string fibermap = "";               // path of a file with a FIBERMAP; "": the image file has it
  std::string trace_reference = "";        // path of a reference spectrum; "": none
  std::function<absl::StatusOr<std::shared_ptr<const Psf>>()> load_psf = {};  // null: the file is opened
};

// Opens the files at the same time, on up to `threads` threads, because they may have to be inflated. Reads
// the reference first. Errors are those of Source::FromFile, ReadTraceReference and load_psf.
absl::StatusOr<JobSources> OpenJobSources(const JobFiles& files, int threads, const std::stop_token& stop);

// The reference spectrum in a text file of up to kMaxReferenceBytes. Errors are those of Source::FromFile and
// ParseReferenceSpectrum.
absl::StatusOr<std::shared_ptr<const ReferenceSpectrum>> ReadTraceReference(const std::string& path,
                                                                            const std::stop_token& stop);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_JOB_SOURCES_H_
