// A job's inputs, wherever they come from.
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

// An image in arrays of the caller's, which stay as they are until the job has ended.
struct ImageArrays {
  ImagePlanes planes;
  std::vector<std::string> cards;  // 80 characters each
};

// A job's inputs, opened but not decoded.
struct JobSources {
  std::string image_name, psf_name;   // for the frame's header, and messages
  std::optional<Source> image;        // or
  std::optional<RawImage> raw_image;  // or
  std::optional<ImageArrays> arrays;
  std::optional<Source> psf;              // or
  std::shared_ptr<const Psf> loaded_psf;  // which comes first if there are both
  std::optional<Source> fibermap;         // none: the image file's own
  // For jobs that measure trace shifts; null: y is measured between fibres only.
  std::shared_ptr<const ReferenceSpectrum> trace_reference;
  std::string trace_reference_name;
};

// A job's inputs as files of this machine, or what there is in place of them.
struct JobFiles {
  std::string image = "";                  // path, or the name of
  std::optional<ImageArrays> arrays = {};  // an image in memory
  std::string psf = "";                    // path, or the name of what load_psf gives
  std::string fibermap = "";               // path of a file with a FIBERMAP; "": the image file's own
  std::string trace_reference = "";        // path of a reference spectrum; "": none
  std::function<absl::StatusOr<std::shared_ptr<const Psf>>()> load_psf = {};  // null: the file is opened
};

// Opens the files at the same time, by up to `threads` threads: they may have to be inflated. Reads the
// reference first. Errors as Source::FromFile, ReadTraceReference and load_psf.
absl::StatusOr<JobSources> OpenJobSources(const JobFiles& files, int threads, const std::stop_token& stop);

// The reference spectrum in a text file, up to kMaxReferenceBytes. Errors as Source::FromFile and
// ParseReferenceSpectrum.
absl::StatusOr<std::shared_ptr<const ReferenceSpectrum>> ReadTraceReference(const std::string& path,
                                                                            const std::stop_token& stop);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_JOB_SOURCES_H_
