// make_seeds FOLDER: writes small valid inputs for each fuzz target, each into a folder of the target's name.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/digest/crc32c.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/writers.h"
#include "core/products/template_file.h"
#include "proto/trace_report.h"
#include "server/detached/store/event_log_format.h"
#include "server/detached/store/job_record.h"
#include "tests/fits/psf/psf_samples.h"
#include "tests/fits/samples.h"
#include "tests/fuzz/support/event_log_id.h"
#include "tests/fuzz/support/submission.h"
#include "tests/service/support/attack_files.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

using testing::ReadBytes;
using testing::WriteBytes;

// Returns whether all files were written.
bool WritePsfs(const std::string& folder) {
  Psf tail = testing::SamplePsf();
  GaussHermiteSpots& spots = GaussHermite(tail);
  spots.tail_amplitude = spots.tail_core = spots.tail_index = spots.tail_scale_x = spots.tail_scale_y =
      spots.core().sigma_x;
  WriteBytes(folder + "/version-2.fits.gz", testing::ManyTermsPsf(3, 2));
  for (const testing::NamedFile& file : testing::PsfFiles())
    WriteBytes(folder + "/" + file.type + ".fits", file.bytes);
  return WritePsf(testing::SamplePsf(), folder + "/version-3.fits").ok() &&
         WritePsf(tail, folder + "/tail.fits").ok() &&
         WritePsf(testing::SamplePsf(), folder + "/version-3.fits.gz").ok();
}

bool WriteImages(const std::string& folder) {
  WriteBytes(folder + "/flat.fits.gz", testing::FlatFrame(20, 30));
  const PreprocFile small = testing::SamplePreproc(6, 12);
  return WritePreproc(small, folder + "/plain.fits", false).ok() &&
         WritePreproc(small, folder + "/rice.fits", true).ok() &&
         WritePreproc(small, folder + "/plain.fits.gz", false).ok();
}

bool WriteHeaders(const std::string& folder) {
  return WriteFrame(testing::SampleFrame(2, 4), folder + "/frame.fits").ok() &&
         WriteTruth(testing::SampleTruth(), folder + "/truth.fits").ok() &&
         WritePreproc(testing::SamplePreproc(6, 12), folder + "/preproc.fits", false).ok();
}

// Writes a file of spectra of one arm.
bool WriteSpectra(const std::string& path) {
  constexpr int64_t kRows = 2, kBins = 12, kDiagonals = 11;
  FitsBuilder fits(1 << 16);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.BeginTable("FIBERMAP", kRows, {"TARGETID"}, {"1K"});
  fits.ColumnValues(1, 1, absl::MakeConstSpan(std::vector<int64_t>{7, 5}));
  std::vector<double> wave;
  for (int64_t bin = 0; bin < kBins; ++bin) wave.push_back(6000 + static_cast<double>(bin));
  fits.BeginImage("R_WAVELENGTH", DOUBLE_IMG, {kBins});
  fits.Pixels(absl::MakeConstSpan(wave));
  for (const char* const hdu : {"R_FLUX", "R_IVAR"}) {
    fits.BeginImage(hdu, FLOAT_IMG, {kRows, kBins});
    fits.Pixels(absl::MakeConstSpan(std::vector<float>(kRows * kBins, 2)));
  }
  fits.BeginImage("R_RESOLUTION", FLOAT_IMG, {kRows, kDiagonals, kBins});
  fits.Pixels(absl::MakeConstSpan(std::vector<float>(kRows * kDiagonals * kBins, 0.1F)));
  return fits.Write(path).ok();
}

// Writes a fiberflat with all optional parts, a library of two templates and a file of spectra.
bool WriteProductInputs(const std::string& folder) {
  FitsBuilder flat(1 << 16);
  flat.BeginImage("FIBERFLAT", FLOAT_IMG, {2, 3});
  flat.Pixels(absl::MakeConstSpan(std::vector<float>{1, 0, 1, 1, 2, 3}));
  flat.BeginImage("IVAR", FLOAT_IMG, {2, 3});
  flat.Pixels(absl::MakeConstSpan(std::vector<float>(6, 4)));
  flat.BeginImage("MASK", ULONG_IMG, {2, 3});
  flat.Pixels(absl::MakeConstSpan(std::vector<uint32_t>(6, 0)));
  flat.BeginImage("WAVELENGTH", DOUBLE_IMG, {3});
  flat.Pixels(absl::MakeConstSpan(std::vector<double>{6000, 6001, 6002}));
  flat.BeginTable("FIBERMAP", 2, {"FIBER"}, {"1J"});
  flat.ColumnValues(1, 1, absl::MakeConstSpan(std::vector<int64_t>{7, 5}));
  constexpr int64_t kSamples = 300;
  Array<float, 2> flux({2, kSamples}, 1.0f);
  const absl::StatusOr<TemplateLibrary> library =
      MakeTemplateLibrary(8.7, 3e-5, {"TEFF"}, {{4500}, {5500}}, flux);
  return flat.Write(folder + "/fiberflat.fits").ok() && WriteSpectra(folder + "/spectra.fits") &&
         WriteFrame(testing::SampleFrame(2, 12), folder + "/frame.fits").ok() && library.ok() &&
         WriteTemplates(*library, folder + "/templates.fits").ok() &&
         WriteTemplates(*library, folder + "/templates.fits.gz").ok();
}

// Writes two bundles and a summary as runs write them, one log with the model, one of a job that continues.
void WriteEventLogs(const std::string& folder) {
  std::vector<v1::ExtractEvent> events(6);
  v1::FrameInfo& info = *events[0].mutable_frame_info();
  info.mutable_grid()->set_first(5760);
  info.mutable_grid()->set_step(0.8);
  info.mutable_grid()->set_count(2);
  info.set_fibre_count(2);
  info.set_version("1");
  info.add_image_cards(testing::Card("CAMERA  = 'r0'"));
  TraceReport report;
  report.shifts.x.status = ShiftStatus::kOk;
  report.shifts.x.series.Assign({1, 2}, 0.1);
  report.shifts.x.covariance.Assign({2, 2}, 1e-6);
  report.shifts.y.status = ShiftStatus::kRefused;
  report.shifts.reason = "y: no line is seen";
  report.wave_min = 5760;
  report.wave_max = 7620;
  report.u = {-1, 1};
  SetTraceReport(report, info.mutable_trace_shifts());
  *events[1].mutable_frame_info() = info;
  events[1].mutable_frame_info()->set_last(true);
  events[2].mutable_model()->set_pixels(std::string(16, '\1'));
  for (uint32_t k = 0; k < 2; ++k) {
    v1::BundlePart& bundle = *events[3 + k].mutable_bundle();
    bundle.set_bundle(k);
    bundle.set_flux(std::string(8, '\2'));
    bundle.set_last(true);
  }
  v1::JobSummary& summary = *events[5].mutable_summary();
  summary.add_bad2dfit(3);
  summary.add_stages()->set_stage("solve");
  summary.set_last(true);
  std::string file = EventLogHeader(EventLogId());
  for (size_t k = 0; k < events.size(); ++k) {
    AppendRecord(k + 1, events[k].SerializeAsString(), &file);
    if (k == 3) WriteBytes(folder + "/running", file);
  }
  WriteBytes(folder + "/whole", file);
}

// Writes records for record_fuzz.cc; the first byte gives the kind of the rest.
void WriteRecords(const std::string& folder) {
  constexpr size_t kChecksumBytes = 9;
  StoredJob job;
  job.number = 7;
  job.id = EventLogId();
  job.owner = "me";
  job.request_id = "night 7";
  job.header = "a header";
  job.inputs = {{"image", 6, std::string(64, 'a')}};
  job.keep_seconds = 3600;
  job.submitted = 1.7e9;
  const std::string header = HeaderRecord(job), queued = StateRecord(job);
  job.changes = 1;
  EndJob(absl::InternalError("its device failed"), &job);
  const std::string ended = StateRecord(job), line = IndexRecord(job);
  WriteBytes(folder + "/header", '\0' + header);
  WriteBytes(folder + "/state", '\1' + queued + ended);
  WriteBytes(folder + "/header-json", '\2' + header.substr(kChecksumBytes));
  WriteBytes(folder + "/state-json", '\3' + queued.substr(kChecksumBytes) + ended.substr(kChecksumBytes));
  WriteBytes(folder + "/index", '\4' + line);
  WriteBytes(folder + "/index-json", '\5' + line.substr(kChecksumBytes));
}

// Writes jobs whose inputs come by path, by upload, and as arrays.
void WriteJobs(const std::string& folder) {
  const std::string pixels = testing::FlatFrame(20, 30);
  std::vector<v1::SubmitRequest> messages(3);
  v1::SubmitHeader& header = *messages[0].mutable_header();
  header.set_request_id("night 7");
  header.set_keep_seconds(3600);
  v1::JobHeader& job = *header.mutable_job();
  job.mutable_image()->set_path("/frames/image.fits");
  job.mutable_psf()->set_path("/frames/psf.fits");
  job.mutable_grid()->set_first(5760);
  job.mutable_grid()->set_step(0.8);
  job.mutable_grid()->set_count(100);
  job.set_fibre_count(2);
  job.set_bundle_size(25);
  job.set_psferr(0.01);
  job.set_priority(3);
  WriteBytes(folder + "/by-path", BytesOf({messages[0]}));
  v1::Upload& upload = *job.mutable_image()->mutable_upload();
  upload.set_name("frame.fits.gz");
  upload.set_bytes(pixels.size());
  messages[1].mutable_chunk()->set_input(v1::INPUT_IMAGE);
  messages[1].mutable_chunk()->set_payload(pixels);
  messages[2].mutable_end()->set_input(v1::INPUT_IMAGE);
  messages[2].mutable_end()->set_crc32c(Crc32c(pixels));
  job.mutable_psf()->set_psf_hash(std::string(64, 'a'));
  WriteBytes(folder + "/by-upload", BytesOf(messages));
  v1::ProductRequest& products = *job.mutable_products();
  products.set_sky(true);
  products.mutable_templates()->set_content_hash(std::string(64, 'b'));
  products.mutable_fiberflat()->mutable_upload()->set_bytes(pixels.size());
  std::vector<v1::SubmitRequest> with_products = messages;
  for (size_t k : {1, 2}) with_products.push_back(messages[k]);
  with_products[3].mutable_chunk()->set_input(v1::INPUT_FIBERFLAT);
  with_products[4].mutable_end()->set_input(v1::INPUT_FIBERFLAT);
  WriteBytes(folder + "/with-products", BytesOf(with_products));
  job.clear_products();
  const std::string reference = "# sky\n5577.3 1\n6300.3 2.5\n";
  job.set_trace_shifts(v1::TRACE_AXES_XY);
  job.mutable_trace_degrees()->set_x_fibre(1);
  job.mutable_trace_reference()->mutable_upload()->set_bytes(reference.size());
  std::vector<v1::SubmitRequest> with_reference = messages;
  for (size_t k : {1, 2}) with_reference.push_back(messages[k]);
  with_reference[3].mutable_chunk()->set_input(v1::INPUT_TRACE_REFERENCE);
  with_reference[3].mutable_chunk()->set_payload(reference);
  with_reference[4].mutable_end()->set_input(v1::INPUT_TRACE_REFERENCE);
  with_reference[4].mutable_end()->set_crc32c(Crc32c(reference));
  WriteBytes(folder + "/with-trace-reference", BytesOf(with_reference));
  job.clear_trace_reference();
  v1::RawImage& raw = *job.mutable_image()->mutable_raw();
  raw.set_rows(1);
  raw.set_columns(2);
  raw.add_header_cards(testing::Card("CAMERA  = 'r0'"));
  messages[1].mutable_chunk()->set_payload(std::string(24, '\0'));
  messages[2].mutable_end()->set_crc32c(Crc32c(std::string(24, '\0')));
  WriteBytes(folder + "/arrays", BytesOf(messages));
}

void WriteRequests(const std::string& folder) {
  v1::ExtractRequest header, chunk, end;
  header.mutable_header()->mutable_image()->set_path("/frames/image.fits");
  chunk.mutable_chunk()->set_input(v1::INPUT_PSF);
  chunk.mutable_chunk()->set_offset(300);
  chunk.mutable_chunk()->set_payload(std::string(100, '\1'));
  end.mutable_end()->set_input(v1::INPUT_PSF);
  end.mutable_end()->set_crc32c(1);
  WriteBytes(folder + "/header", "\x08" + header.SerializeAsString());
  WriteBytes(folder + "/chunk", "\x28" + chunk.SerializeAsString());
  WriteBytes(folder + "/end", "\x01" + end.SerializeAsString());
}

// Writes texts for text_fuzz.cc; the first byte tells how it reads the rest.
void WriteTexts(const std::string& folder) {
  constexpr const char* kTexts[] = {
      "5760,7620,0.8",
      "0,2,3",
      "/frames/psf.fits,5760,7620,0.8,25",
      "[::1]:50051",
      "0.5GiB",
      "node7:50051, dns:///name:50051",
      "submit,read",
      ("# ours\nme submit,read certificate CN=me,O=Lab\nme submit,read uid 1000\nme submit,read weight 2.5\n"
       "* - queue-share 0.1\n"
       "you administer token sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"),
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "<a href=\"x\">'&amp;'</a>"};
  char reader = 0;
  for (const char* text : kTexts) {
    WriteBytes(folder + "/" + std::to_string(reader), reader + std::string(text));
    ++reader;
  }
  for (char option = 0; option < 50; ++option)
    WriteBytes(folder + "/option-" + std::to_string(option), std::string{4, option, '1', '6'});
}

void WriteConfigurations(const std::string& folder) {
  WriteBytes(folder + "/all",
             "# a server\nlisten = 127.0.0.1:0\nhttp = none\nallow-root = /tmp\nallow-root = /\n"
             "max-queued-jobs = 12\nmax-upload-bytes = 2GiB\nstall-seconds = 0.3e1\ndevices = 0,2\n"
             "pin-preloaded = true\nlog-level = debug\npreload-psf = /psf.fits,5760,7620,0.8\n"
             "SPEXD_THREADS=2\nSPEXD_ALLOW_ROOT=/tmp:/\n");
  WriteBytes(folder + "/jobs", "jobs-dir = /jobs\njobs-disk-bytes = 10GiB\njobs-keep-seconds = 60\n");
}

int Run(const std::string& folder) {
  const auto target = [&folder](const std::string& name) {
    std::filesystem::create_directories(folder + "/" + name);
    return folder + "/" + name;
  };
  const bool written = WritePsfs(target("psf")) && WriteImages(target("image")) &&
                       WriteHeaders(target("header")) && WriteProductInputs(target("product"));
  WriteEventLogs(target("events"));
  WriteRecords(target("record"));
  WriteJobs(target("job"));
  WriteRequests(target("request"));
  WriteTexts(target("text"));
  WriteConfigurations(target("config"));
  if (!written) std::fprintf(stderr, "make_seeds: cannot write below %s\n", folder.c_str());
  return written ? 0 : 1;
}

}  // namespace
}  // namespace spexd::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  return spexd::fuzz::Run(argv[1]);
}
