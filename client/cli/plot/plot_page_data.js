"use strict";
// What the page knows about the frame (descriptions from JSON, arrays from base64), and how numbers are written.

// Returns the array of a data element, or null. Drops the element, as its text takes more room than the numbers.
function decoded(name, Numbers) {
  const element = document.getElementById("data-" + name);
  if (!element) return null;
  const binary = atob(element.textContent);
  const bytes = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; ++k) bytes[k] = binary.charCodeAt(k);
  element.remove();
  return new Numbers(bytes.buffer);
}

class FrameData {
  constructor() {
    this.about = JSON.parse(document.getElementById("about").textContent);
    this.fibres = this.about.fibres;
    this.bins = this.about.bins;
    this.step = this.about.step;
    this.unit = this.about.unit;
    // Name, first bin and one beyond the last of each arm; wavelengths rise within an arm alone.
    this.arms = this.about.arms || [["", 0, this.bins]];
    this.starts = new Set(this.arms.map(([, first]) => first));
    this.rowName = this.about.arms ? "Row" : "Fibre";
    this.wave = decoded("wave", Float64Array);
    this.arrays = { flux: decoded("flux", Float32Array), ivar: decoded("ivar", Float32Array) };
    this.arrays.mask = this.maskOf("mask");
    const skyflux = decoded("skyflux", Float32Array);
    this.skyless = skyflux && { flux: skyflux, ivar: decoded("skyivar", Float32Array), mask: this.maskOf("skymask") };
    this.truth = decoded("truth", Float32Array);
    this.widths = decoded("fwhm", Uint16Array);
    this.models = decoded("model", Float32Array);
    this.scans = decoded("scan", Float32Array);
    this.partScans = decoded("partscans", Float32Array);
    this.parts = this.about.parts || [];
    this.velocities = this.about.velocities || [];
    this.lines = this.about.lines || [];
    this.shifts = this.about.shifts || null;
  }

  // Returns a mask by bins. The page has masks as stretches of bins with one value.
  maskOf(name) {
    const stretches = decoded(name, Uint32Array);
    const mask = new Uint32Array(this.fibres.length * this.bins);
    for (let k = 0; k < stretches.length; k += 3) mask.fill(stretches[k + 2], stretches[k], stretches[k + 1]);
    return mask;
  }

  row(array, fibre) {
    return array && array.subarray(fibre * this.bins, (fibre + 1) * this.bins);
  }

  // Returns one fibre's flux, ivar and mask, of the frame or without the sky.
  spectrum(arrays, fibre) {
    const spectrum = {};
    for (const name of ["flux", "ivar", "mask"]) spectrum[name] = this.row(arrays[name], fibre);
    return spectrum;
  }

  // Returns what a table of velocities has on one fibre: {said, velocity, model, scan, parts}, or null. `parts`: the
  // name and chi2(v) of each arm.
  star(fibre) {
    const star = this.fibres[fibre].star, many = this.velocities.length;
    if (!star) return null;
    const scanAt = (array, row) => array.subarray(row * many, (row + 1) * many);
    const parts = this.parts.map((name, k) => [name, scanAt(this.partScans, k * this.fibres.length + fibre)]);
    return { ...star, model: this.row(this.models, fibre), scan: scanAt(this.scans, fibre), parts };
  }

  // Lines of a galaxy with an accepted redshift that lie in the spectrum: [name, wavelength].
  linesOf(fibre) {
    const { galaxy } = this.fibres[fibre];
    if (!galaxy || !galaxy.accepted) return [];
    return this.lines.map(([name, wave]) => [name, wave * (1 + galaxy.z)])
      .filter(([, wave]) => wave > this.low && wave < this.high);
  }

  // Returns a fibre's trace shift in pixels at a wavelength, interpolated linearly in the table; null: not measured.
  shift(axis, fibre, wave) {
    const { waves, [axis]: { values } } = this.shifts;
    if (!values) return null;
    let k = 0;
    while (k < waves.length - 2 && wave > waves[k + 1]) ++k;
    const part = (wave - waves[k]) / (waves[k + 1] - waves[k]);
    return values[fibre][k] + part * (values[fibre][k + 1] - values[fibre][k]);
  }

  // Returns one fibre's FWHM of the resolution by bins, in Angstrom; NaN where there is none.
  fwhm(fibre) {
    const steps = this.row(this.widths, fibre);
    return steps && Float64Array.from(steps, (value) => (value > 0 ? value * this.about.fwhmStep : NaN));
  }

  get low() {
    return Math.min(...this.arms.map(([, first]) => this.wave[first])) - 0.5 * this.step;
  }

  get high() {
    return Math.max(...this.arms.map(([, , end]) => this.wave[end - 1])) + 0.5 * this.step;
  }

  // Returns the arm's bin that is nearest to a wavelength.
  binIn([, first, end], wave) {
    const step = end - first > 1 ? (this.wave[end - 1] - this.wave[first]) / (end - first - 1) : this.step;
    return first + Math.min(Math.max(Math.round((wave - this.wave[first]) / step), 0), end - first - 1);
  }

  // Returns the bin nearest to a wavelength; if two arms are equally near, that of the first.
  binAt(wave) {
    const bins = this.arms.map((arm) => this.binIn(arm, wave)), away = (bin) => Math.abs(this.wave[bin] - wave);
    return bins.reduce((best, bin) => (away(bin) < away(best) ? bin : best));
  }

  // Returns the first and last bin of the arms that lie in a range of wavelengths; if none does, the first is beyond
  // the last.
  binsBetween(low, high) {
    const from = this.arms.find(([, , end]) => this.wave[end - 1] + 0.5 * this.step >= low) || this.arms[this.arms.length - 1];
    const to = [...this.arms].reverse().find(([, first]) => this.wave[first] - 0.5 * this.step <= high) || this.arms[0];
    return [this.binIn(from, low), this.binIn(to, high)];
  }

  armOf(bin) {
    return this.arms.find(([, first, end]) => bin >= first && bin < end)[0];
  }

  // Returns the names of a mask's bits; for bits without a name, their numbers.
  maskNames(value) {
    const names = [];
    for (let bit = 0; bit < 32; ++bit) {
      if ((value >>> bit) & 1) names.push(this.about.maskNames[bit] || "bit " + bit);
    }
    return names;
  }

  label(fibre) {
    const { number, kind, target, row } = this.fibres[fibre];
    if (row) return number + " · " + row;
    return [number, kind, target].filter((part) => part !== undefined && part !== "").join(" · ");
  }
}

function isGood(spectrum, bin) {
  return spectrum.mask[bin] === 0 && spectrum.ivar[bin] > 0 && Number.isFinite(spectrum.flux[bin]);
}

// Writes a number with four digits, without an exponent where possible.
function digits(value) {
  if (!Number.isFinite(value)) return "none";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(3).replace("-", "−");
  const places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return value.toFixed(places).replace("-", "−");
}

// Writes a number with three decimals and a sign.
function signed(value) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
}

const TWO_FIT = 5; // for this many ticks, the step is at most half of the range, so that two lie in it

// Returns about `count` round numbers from low to high, at least two, with the decimals that they need.
function ticksBetween(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) {
    ticks.push({ value: k * step, text: (k * step + 0).toFixed(Math.min(decimals, 12)).replace("-", "−") });
  }
  return ticks.length < 2 && count < TWO_FIT ? ticksBetween(low, high, TWO_FIT) : ticks;
}

function percentile(sorted, fraction) {
  return sorted[Math.round(fraction * (sorted.length - 1))];
}
