// Small frames with known truth.
#ifndef SPEXD_TESTS_ANALYSIS_MADE_UP_FRAME_H_
#define SPEXD_TESTS_ANALYSIS_MADE_UP_FRAME_H_

#include <cstdint>
#include <random>
#include <vector>

#include "core/analysis/usable_spectra.h"
#include "core/model/frame.h"

namespace spexd::testing {

inline constexpr int kFrameBins = 400;
inline constexpr double kFirstWave = 6000, kWaveStep = 0.8;

// Returns a frame without light whose fibres have different Gaussian resolutions, with the same variance in
// all bins.
Frame DarkFrame(int fibres, double variance);

// Returns the light of a fibre as the frame sees it: R f.
std::vector<double> Seen(const Frame& frame, int fibre, const std::vector<double>& light);
void AddLight(const std::vector<double>& light, int fibre, Frame* frame);
void AddNoise(std::mt19937* random, Frame* frame);

// Returns a sky: a continuum of 20 with bright lines.
std::vector<double> SkyLight();

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_MADE_UP_FRAME_H_
