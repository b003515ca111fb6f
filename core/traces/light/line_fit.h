// A fit of a stretch of a fibre's row spectrum by a model spectrum and its derivative.
#ifndef SPEXD_CORE_TRACES_LIGHT_LINE_FIT_H_
#define SPEXD_CORE_TRACES_LIGHT_LINE_FIT_H_

namespace spexd::traces {

// The parameters of flux = amplitude m + c0 + c1 z + moment dm, where z runs from -1 to 1 over the stretch.
// The info of a parameter is 1 / variance with the other parameters eliminated; 0 if nothing constrains it.
struct LineFit {
  double amplitude = 0, amplitude_info = 0;
  double moment = 0, moment_info = 0;
  int used = 0;  // number of rows
};

// Fits `rows` rows. Arrays [row]: the flux, its weights (1 / variance), the model m and dm, its derivative
// with respect to the trace's row. Rows beyond 6 standard deviations of the first fit, including an error of
// a tenth of the model, get weight 0.
LineFit FitLines(int rows, const float* flux, float* weight, const float* model, const float* slope);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_LINE_FIT_H_
