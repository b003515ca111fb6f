#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/psf/psf_files.h"

namespace spexd {
namespace {

// Reads the CCD, the fibres and their traces. `x` and `y`: the names of the HDUs of traces.
absl::StatusOr<Psf> ReadInstrument(const FitsFile& file, const char* x, const char* y) {
  Psf psf;
  const Hdu& first = file.hdus().front();
  SPEXD_ASSIGN_OR_RETURN(psf.columns, ReadInteger(first, "NPIX_X", 1, kMaxCcdSide));
  SPEXD_ASSIGN_OR_RETURN(psf.rows, ReadInteger(first, "NPIX_Y", 1, kMaxCcdSide));
  SPEXD_ASSIGN_OR_RETURN(const double psferr, NumberOr(first, "PSFERR", 0));
  if (psferr != 0) psf.psferr = psferr;
  if (first.Has("FIBERMIN")) {
    SPEXD_ASSIGN_OR_RETURN(psf.fibre_min, ReadInteger(first, "FIBERMIN", 0, INT32_MAX / 2));
  }
  SPEXD_ASSIGN_OR_RETURN(const Hdu* trace, file.Get({x}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*trace));
  const int64_t fibres = layout.axes.back();
  if (layout.axes.size() != 2 || fibres > kMaxFibres) {
    return trace->Error(absl::StrFormat("is %s, must be fibres x coefficients, at most %d fibres",
                                        layout.ShapeText(), kMaxFibres));
  }
  psf.fibres = static_cast<int>(fibres);
  if (first.Has("NSPEC")) {
    SPEXD_ASSIGN_OR_RETURN(const int announced, ReadInteger(first, "NSPEC", 1, kMaxFibres));
    if (announced != fibres) {
      return trace->Error(absl::StrFormat("has traces of %d fibres, NSPEC announces %d", fibres, announced));
    }
  }
  SPEXD_ASSIGN_OR_RETURN(psf.traces.x, ReadTrace(file, x, psf.fibres));
  SPEXD_ASSIGN_OR_RETURN(psf.traces.y, ReadTrace(file, y, psf.fibres));
  for (const auto& [name, table] : {std::pair{x, &psf.traces.x}, std::pair{y, &psf.traces.y}}) {
    if (IsDomain(table->wave_min, table->wave_max)) continue;
    return file.Find({name})->Error(absl::StrFormat("the wavelengths WAVEMIN %g to WAVEMAX %g are no domain",
                                                    table->wave_min, table->wave_max));
  }
  return psf;
}

struct Numbers {
  std::vector<double> values;
  MemoryLoan memory;
};

// Reads a list of at most `most` numbers from an HDU.
absl::StatusOr<Numbers> ReadNumbers(const FitsFile& file, const char* name, int64_t most) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
  if (layout.axes.size() != 1 || layout.pixels > most) {
    return hdu->Error(
        absl::StrFormat("is %s, must be a list of at most %d numbers", layout.ShapeText(), most));
  }
  SPEXD_RETURN_IF_ERROR(CheckPresent(*hdu, layout));
  SPEXD_ASSIGN_OR_RETURN(MemoryLoan memory, hdu->BorrowMemory(layout.pixels * int64_t{sizeof(double)}));
  Numbers numbers{std::vector<double>(static_cast<size_t>(layout.pixels)), std::move(memory)};
  SPEXD_RETURN_IF_ERROR(DecodeImage(*hdu, layout, {}, absl::MakeSpan(numbers.values)));
  return numbers;
}

// Takes memory for the fibres.
absl::Status TakeFibres(const Hdu& hdu, int fibres, SampledSpots& spots) {
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(int64_t{fibres} * int64_t{sizeof(SampledFibre)}));
  spots.fibres.resize(static_cast<size_t>(fibres));
  return absl::OkStatus();
}

// The shape of an HDU of images. The last two of the `axes` axes are the rows and columns of an image.
absl::StatusOr<std::vector<int64_t>> ShapeOfImages(const Hdu& hdu, size_t axes, const char* what) {
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(hdu));
  std::vector<int64_t> shape(layout.axes.rbegin(), layout.axes.rend());
  if (shape.size() != axes) {
    return hdu.Error(absl::StrFormat("is %s, must be %s", layout.ShapeText(), what));
  }
  constexpr int64_t kMaxSamples = int64_t{kMaxStampSide} * kMaxPhases;
  for (const int64_t side : {shape[axes - 1], shape[axes - 2]}) {
    if (side > kMaxSamples) {
      return hdu.Error(absl::StrFormat("has images of %d x %d samples, the limit is %d along an axis",
                                       shape[axes - 2], shape[axes - 1], kMaxSamples));
    }
  }
  return shape;
}

// Divides all images by the largest sum of any of them, so that float32 can hold their stamps whatever their
// unit.
void ScaleImages(int64_t count, absl::Span<double> images) {
  const size_t samples = images.size() / static_cast<size_t>(count);
  double largest = 0;
  for (size_t first = 0; first < images.size(); first += samples) {
    double sum = 0;
    for (const double value : images.subspan(first, samples)) sum += value;
    largest = std::max(largest, std::fabs(sum));
  }
  if (!(largest > 0 && std::isfinite(largest))) return;  // CheckPsf refuses such images
  for (double& value : images) value /= largest;
}

// Reads and bins the images of a layout, unless they take more than the limit.
absl::Status ReadImages(const Hdu& hdu, int rows, int columns, int fibres, const PsfReading& reading,
                        SampledSpots& spots) {
  SPEXD_RETURN_IF_ERROR([&] {
    const absl::Status status = spots.CheckOutline(fibres);
    return status.ok() ? status : hdu.Error(status.message());
  }());
  const SampledLayout& layout = spots.layout;
  const int64_t bytes = StampsBytes(layout), samples = int64_t{rows} * columns;
  if (bytes > reading.max_table_bytes) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const MemoryLoan decoded,
                         hdu.BorrowMemory((layout.images * samples + int64_t{rows} * layout.stamp.x.size +
                                           layout.stamp.pixels()) *
                                          int64_t{sizeof(double)}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout image_layout, LayoutOf(hdu));
  SPEXD_RETURN_IF_ERROR(CheckPresent(hdu, image_layout, reading.stop));
  std::vector<double> images(static_cast<size_t>(layout.images * samples));
  SPEXD_RETURN_IF_ERROR(
      DecodeImage(hdu, image_layout, Workers{.threads = 1, .stop = reading.stop}, absl::MakeSpan(images)));
  ScaleImages(layout.images, absl::MakeSpan(images));
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(bytes));
  Array<float, 2> stamps({layout.stamps(), layout.stamp.pixels()});
  const int64_t values = stamps.size() / layout.images;
  for (int64_t k = 0; k < layout.images; ++k) {
    SPEXD_RETURN_IF_ERROR(CheckStop(reading.stop));
    BinImage(absl::MakeConstSpan(images).subspan(k * samples, samples), columns, rows, layout,
             absl::MakeSpan(stamps.data() + k * values, values));
  }
  spots.stamps = SharedArray(std::move(stamps));
  spots.sigma_y = MeanSigmaY(spots);
  return absl::OkStatus();
}

// The PSF with these spots. Its default grid covers the wavelengths that have traces and spots.
absl::StatusOr<Psf> WithSpots(const FitsFile& file, Psf psf, SampledSpots spots) {
  const WaveRange domain = spots.Domain();
  const LegendreTable &x = psf.traces.x, &y = psf.traces.y;
  psf.wave_min = std::max({x.wave_min, y.wave_min, domain.first});
  psf.wave_max = std::min({x.wave_max, y.wave_max, domain.last});
  if (!(psf.wave_min < psf.wave_max)) {
    return file.hdus().front().Error(absl::StrFormat(
        "there are traces from %g to %g Angstrom and spots from %g to %g (SPOTWAVE): they have no "
        "wavelengths "
        "in common",
        std::max(x.wave_min, y.wave_min), std::min(x.wave_max, y.wave_max), domain.first, domain.last));
  }
  psf.spots = std::move(spots);
  return psf;
}

// The sample at which specter places a trace: the middle of the pixel in the middle of the stamp.
// InvalidArgument unless the image is a whole number of pixels.
absl::StatusOr<double> CentreOfSpecter(const Hdu& hdu, int samples, int oversampling) {
  if (samples % oversampling != 0) {
    return hdu.Error(
        absl::StrFormat("has images of %d samples along an axis, must be a multiple of %d, the "
                        "samples along a CCD pixel",
                        samples, oversampling));
  }
  const int pixels = samples / oversampling + 1;
  return oversampling * (pixels / 2 - 0.5) - 0.5;
}

// Reads SPOTS, SPOTPOS, SPOTWAVE and FIBERPOS, which all files with a grid of images have.
absl::StatusOr<SampledSpots> ReadGrid(const FitsFile& file, const std::vector<int64_t>& shape, int fibres) {
  SampledSpots spots;
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"SPOTS"}));
  for (const auto& [name, list] :
       {std::pair{"SPOTPOS", &spots.positions}, std::pair{"SPOTWAVE", &spots.wavelengths}}) {
    SPEXD_ASSIGN_OR_RETURN(Numbers numbers, ReadNumbers(file, name, kMaxSampledImages));
    *list = std::move(numbers.values);
    numbers.memory.Keep();
  }
  SPEXD_ASSIGN_OR_RETURN(const Numbers of_fibres, ReadNumbers(file, "FIBERPOS", kMaxFibres));
  const std::vector<double>& positions = of_fibres.values;
  if (shape[0] != static_cast<int64_t>(spots.positions.size()) ||
      shape[1] != static_cast<int64_t>(spots.wavelengths.size())) {
    return hdu->Error(
        absl::StrFormat("has images at %d positions and %d wavelengths, SPOTPOS has %d and "
                        "SPOTWAVE %d",
                        shape[0], shape[1], spots.positions.size(), spots.wavelengths.size()));
  }
  if (static_cast<int>(positions.size()) != fibres) {
    return file.Find({"FIBERPOS"})
        ->Error(
            absl::StrFormat("has positions of %d fibres, the traces are of %d", positions.size(), fibres));
  }
  SPEXD_RETURN_IF_ERROR(TakeFibres(*hdu, fibres, spots));
  for (size_t k = 0; k < positions.size(); ++k) spots.fibres[k].position = positions[k];
  spots.layout.positions = static_cast<int>(shape[0]);
  spots.layout.wavelengths = static_cast<int>(shape[1]);
  spots.layout.images = static_cast<int>(std::min(shape[0] * shape[1], int64_t{kMaxSampledImages} + 1));
  return spots;
}

constexpr char kGridShape[] = "positions x wavelengths x rows x columns";

}  // namespace

absl::StatusOr<Psf> ReadSpotGrid(const FitsFile& file, const PsfReading& reading) {
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadInstrument(file, "XCOEFF", "YCOEFF"));
  const Hdu& first = file.hdus().front();
  SPEXD_ASSIGN_OR_RETURN(const double pixel, first.RequireNumber("CCDPIXSZ"));
  SPEXD_ASSIGN_OR_RETURN(const double sample, first.RequireNumber("PIXSIZE"));
  const double ratio = pixel / sample, whole = std::round(ratio);
  if (!(whole >= 1 && whole <= kMaxPhases && std::fabs(ratio - whole) < 1e-3)) {
    return first.Error(
        absl::StrFormat("CCDPIXSZ %g is %g times PIXSIZE %g, must be a whole number of times, "
                        "1 to %d",
                        pixel, ratio, sample, kMaxPhases));
  }
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"SPOTS"}));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ShapeOfImages(*hdu, 4, kGridShape));
  const int rows = static_cast<int>(shape[2]), columns = static_cast<int>(shape[3]),
            oversampling = static_cast<int>(whole);
  SPEXD_ASSIGN_OR_RETURN(SampledSpots spots, ReadGrid(file, shape, psf.fibres));
  SPEXD_ASSIGN_OR_RETURN(const double centre_x, CentreOfSpecter(*hdu, columns, oversampling));
  SPEXD_ASSIGN_OR_RETURN(const double centre_y, CentreOfSpecter(*hdu, rows, oversampling));
  LayOutImages(columns, rows, oversampling, centre_x, centre_y, &spots.layout);
  SPEXD_RETURN_IF_ERROR(ReadImages(*hdu, rows, columns, psf.fibres, reading, spots));
  return WithSpots(file, std::move(psf), std::move(spots));
}

absl::StatusOr<Psf> ReadMonoSpot(const FitsFile& file, const PsfReading& reading) {
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadInstrument(file, "XCOEFF", "YCOEFF"));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"SPOT"}));
  SPEXD_ASSIGN_OR_RETURN(const int oversampling, ReadInteger(*hdu, "SCALE", 1, kMaxPhases));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ShapeOfImages(*hdu, 2, "rows x columns"));
  const int rows = static_cast<int>(shape[0]), columns = static_cast<int>(shape[1]);
  SampledSpots spots;
  spots.positions = spots.wavelengths = {0};
  SPEXD_RETURN_IF_ERROR(TakeFibres(*hdu, psf.fibres, spots));
  spots.layout.shift = SubpixelShift::kSinc;
  spots.layout.images = spots.layout.positions = spots.layout.wavelengths = 1;
  SPEXD_ASSIGN_OR_RETURN(const double centre_x, CentreOfSpecter(*hdu, columns, oversampling));
  SPEXD_ASSIGN_OR_RETURN(const double centre_y, CentreOfSpecter(*hdu, rows, oversampling));
  LayOutImages(columns, rows, oversampling, centre_x, centre_y, &spots.layout);
  SPEXD_RETURN_IF_ERROR(ReadImages(*hdu, rows, columns, psf.fibres, reading, spots));
  return WithSpots(file, std::move(psf), std::move(spots));
}

namespace {

// Limits a number to the range of int32_t. The model checks it.
int32_t Bounded(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)); }

// Reads the powers of the images of a group from the table NEXP, and each fibre's group and scales from
// XYSCALE.
absl::Status ReadPolynomials(const Hdu& powers, const Hdu& scales, SampledSpots& spots) {
  SPEXD_ASSIGN_OR_RETURN(const TableView of_images, TableView::Make(powers));
  SPEXD_ASSIGN_OR_RETURN(const Column* x_power, of_images.Get("XEXP"));
  SPEXD_ASSIGN_OR_RETURN(const Column* y_power, of_images.Get("YEXP"));
  for (size_t k = 0; k < spots.powers.size(); ++k) {
    const auto row = static_cast<int64_t>(k);
    SPEXD_ASSIGN_OR_RETURN(const int64_t x, of_images.Integer(row, *x_power));
    SPEXD_ASSIGN_OR_RETURN(const int64_t y, of_images.Integer(row, *y_power));
    spots.powers[k] = {Bounded(x), Bounded(y)};
  }
  SPEXD_ASSIGN_OR_RETURN(const TableView of_fibres, TableView::Make(scales));
  SPEXD_ASSIGN_OR_RETURN(const Column* group, of_fibres.Get("IGROUP"));
  for (size_t k = 0; k < spots.fibres.size(); ++k) {
    const auto row = static_cast<int64_t>(k);
    SampledFibre& fibre = spots.fibres[k];
    SPEXD_ASSIGN_OR_RETURN(const int64_t index, of_fibres.Integer(row, *group));
    fibre.group = Bounded(index);
    for (const auto& [name, value] : {std::pair{"X0", &fibre.x0}, std::pair{"XSCALE", &fibre.x_scale},
                                      std::pair{"Y0", &fibre.y0}, std::pair{"YSCALE", &fibre.y_scale}}) {
      SPEXD_ASSIGN_OR_RETURN(const Column* column, of_fibres.Get(name));
      if (column->repeat != 1) return scales.Error(absl::StrFormat("%s must have one number a row", name));
      SPEXD_RETURN_IF_ERROR(of_fibres.Numbers(row, *column, absl::MakeSpan(value, 1)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Psf> ReadPcaPix(const FitsFile& file, const PsfReading& reading) {
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadInstrument(file, "XCOEFF", "YCOEFF"));
  // specter finds these HDUs by their positions, not by their names.
  constexpr size_t kPowers = 3, kScales = 4, kImages = 5;
  const std::vector<Hdu>& hdus = file.hdus();
  if (hdus.size() <= kImages) {
    return hdus.front().Error(
        absl::StrFormat("the file has %d HDUs, a PCA-PIX file has %d: traces, powers "
                        "(NEXP), scales (XYSCALE) and images",
                        hdus.size(), kImages + 1));
  }
  const Hdu& hdu = hdus[kImages];
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                         ShapeOfImages(hdu, 4, "groups x powers x rows x columns"));
  const int rows = static_cast<int>(shape[2]), columns = static_cast<int>(shape[3]);
  SPEXD_ASSIGN_OR_RETURN(const TableView powers, TableView::Make(hdus[kPowers]));
  SPEXD_ASSIGN_OR_RETURN(const TableView scales, TableView::Make(hdus[kScales]));
  if (powers.rows() != shape[1] || shape[1] > kMaxImagePowers || shape[0] > kMaxSampledImages) {
    return hdu.Error(
        absl::StrFormat("has %d groups of %d images, must be at most %d groups of %d, for as "
                        "many rows of powers, of which there are %d",
                        shape[0], shape[1], kMaxSampledImages, kMaxImagePowers, powers.rows()));
  }
  if (scales.rows() != psf.fibres) {
    return hdus[kScales].Error(
        absl::StrFormat("has scales of %d fibres, the traces are of %d", scales.rows(), psf.fibres));
  }
  if (rows % 2 == 0 || columns % 2 == 0) {
    return hdu.Error(absl::StrFormat(
        "has images of %d x %d pixels, must be odd numbers: a spot has a middle pixel", rows, columns));
  }
  SampledSpots spots;
  spots.layout = {.stamp = {CentredAxis(columns / 2), CentredAxis(rows / 2)},
                  .shift = SubpixelShift::kSinc,
                  .images = static_cast<int>(shape[0] * shape[1]),
                  .powers = static_cast<int>(shape[1])};
  spots.powers.resize(static_cast<size_t>(shape[1]));
  SPEXD_RETURN_IF_ERROR(TakeFibres(hdu, psf.fibres, spots));
  SPEXD_RETURN_IF_ERROR(ReadPolynomials(hdus[kPowers], hdus[kScales], spots));
  SPEXD_RETURN_IF_ERROR(ReadImages(hdu, rows, columns, psf.fibres, reading, spots));
  return WithSpots(file, std::move(psf), std::move(spots));
}

absl::StatusOr<Psf> ReadSampledSpots(const FitsFile& file, const PsfReading& reading) {
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadInstrument(file, "XTRACE", "YTRACE"));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"SPOTS"}));
  SPEXD_ASSIGN_OR_RETURN(const int oversampling, ReadInteger(*hdu, "OVERSAMP", 1, kMaxPhases));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ShapeOfImages(*hdu, 4, kGridShape));
  const int rows = static_cast<int>(shape[2]), columns = static_cast<int>(shape[3]);
  SPEXD_ASSIGN_OR_RETURN(SampledSpots spots, ReadGrid(file, shape, psf.fibres));
  SPEXD_ASSIGN_OR_RETURN(const double centre_x, NumberOr(*hdu, "XCENTER", 0.5 * (columns - 1)));
  SPEXD_ASSIGN_OR_RETURN(const double centre_y, NumberOr(*hdu, "YCENTER", 0.5 * (rows - 1)));
  if (!(centre_x >= 0 && centre_x <= columns - 1 && centre_y >= 0 && centre_y <= rows - 1)) {
    return hdu->Error(absl::StrFormat("XCENTER %g, YCENTER %g is not in its images of %d x %d samples",
                                      centre_x, centre_y, columns, rows));
  }
  LayOutImages(columns, rows, oversampling, centre_x, centre_y, &spots.layout);
  SPEXD_RETURN_IF_ERROR(ReadImages(*hdu, rows, columns, psf.fibres, reading, spots));
  return WithSpots(file, std::move(psf), std::move(spots));
}

}  // namespace spexd
