// Small frames whose truth is known.
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

// A frame of fibres with Gaussian resolutions of their own, without light and with the same variance in all
// bins.
Frame DarkFrame(int fibres, double variance);

// Light of each fibre, as the frame sees it: R f.
std::vector<double> Seen(const Frame& frame, int fibre, const std::vector<double>& light);
void AddLight(const std::vector<double>& light, int fibre, Frame* frame);
void AddNoise(std::mt19937* random, Frame* frame);

// A continuum of 20 with bright lines: a sky.
std::vector<double> SkyLight();

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_MADE_UP_FRAME_H_
