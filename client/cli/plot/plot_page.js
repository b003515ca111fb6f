// The page itself: what is shown, the controls, the pointer and the keys.

const TURN = 20; // bins that Shift and an arrow key move by
const MIN_BINS = 4; // the fewest bins that the page zooms in to
const NEAR = 0.001; // a line is named within this fraction of its wavelength, 300 km/s
const ELECTRONS = "electrons / Å"; // the unit that is shortened to e/Å where a bin is read
const MARGIN = { left: 62, right: 20, top: 20, between: 26, bottom: 40 };
const $ = (id) => document.getElementById(id);

// Layers and panels that can be shown: id, label, colour, whether the frame has it.
const LAYERS = [
  ["errors", "± 1 σ", "--band", () => true],
  ["masked", "masked bins", "--masked", () => true],
  ["truth", "R · truth", "--truth", (data) => data.truth !== null],
  ["skyless", "without the sky", "--sky", (data) => data.skyless !== null],
  ["model", "star's model", "--truth", (data) => data.models !== null],
  ["scan", "χ²(v)", "--line", (data) => data.scans !== null],
  ["lines", "lines at z", "--truth", (data) => data.lines.length > 0],
  ["fwhm", "resolution", "--soft", (data) => data.widths !== null],
  ["shifts", "trace shifts", "--line", (data) => data.shifts !== null],
];

class Page {
  constructor(data) {
    this.data = data;
    this.canvas = $("plot");
    this.fibre = 0;
    this.bin = null; // the bin that is read
    this.waves = [data.low, data.high];
    this.values = {}; // ranges that the user set, by panel
    this.shown = {};
    this.listed = data.fibres.map((_, fibre) => fibre);
    this.pointers = new Map();
    this.gesture = null;
    this.lastTap = 0;
    this.axes = null; // the panels' axes, once they were drawn
    this.addControls();
    this.addKeys();
    this.addPointer();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    this.choose(0);
  }

  // ---- What is shown

  choose(fibre) {
    this.fibre = fibre;
    this.values = {};
    this.spectrum = this.data.spectrum(this.data.arrays, fibre);
    this.skyless = this.data.skyless && this.data.spectrum(this.data.skyless, fibre);
    this.truth = this.data.row(this.data.truth, fibre);
    this.fwhm = this.data.fwhm(fibre);
    this.star = this.data.star(fibre);
    this.lines = this.data.linesOf(fibre);
    const { number, snr, fit, place, star, galaxy } = this.data.fibres[fibre];
    $("number").value = number;
    if (!this.listed.includes(fibre)) this.list("");
    $("list").value = fibre;
    const position = this.listed.indexOf(fibre);
    $("previous").disabled = position <= 0;
    $("next").disabled = position >= this.listed.length - 1;
    $("problem").textContent = "";
    $("title").textContent = this.data.rowName + " " + this.data.label(fibre);
    const facts = [place, "median S/N " + digits(snr) + " per bin", fit, star && star.said, galaxy && galaxy.said];
    $("place").textContent = facts.filter((part) => part).join("  ·  ");
    this.canvas.setAttribute("aria-label", "Spectrum of " + this.data.rowName.toLowerCase() + " " + number);
    this.read();
    this.redraw();
  }

  turn(by) {
    const position = this.listed.indexOf(this.fibre) + by;
    if (position >= 0 && position < this.listed.length) this.choose(this.listed[position]);
  }

  show(low, high) {
    const least = MIN_BINS * this.data.step, whole = this.data.high - this.data.low;
    const width = Math.min(Math.max(high - low, Math.min(least, whole)), whole);
    const middle = 0.5 * (low + high);
    const start = Math.min(Math.max(middle - 0.5 * width, this.data.low), this.data.high - width);
    this.waves = [start, start + width];
    this.redraw();
  }

  // Zooms by a factor about a wavelength, which stays where it is.
  zoom(factor, about) {
    this.show(about - (about - this.waves[0]) * factor, about + (this.waves[1] - about) * factor);
  }

  pan(by) {
    this.show(this.waves[0] + by, this.waves[1] + by);
  }

  whole() {
    this.values = {};
    this.show(this.data.low, this.data.high);
  }

  // Reads a bin (null: none) and brings it into view.
  point(bin, follow) {
    this.bin = bin;
    if (bin !== null && follow) {
      const wave = this.data.wave[bin];
      if (wave < this.waves[0]) this.pan(wave - this.waves[0] - 0.5 * this.data.step);
      if (wave > this.waves[1]) this.pan(wave - this.waves[1] + 0.5 * this.data.step);
    }
    this.read();
    this.redraw();
  }

  read() {
    if (this.bin === null) return;
    const bin = this.bin, { spectrum, skyless } = this;
    const parts = [];
    const say = (...pieces) => parts.push(pieces);
    const measured = (s) => digits(s.flux[bin]) + (s.ivar[bin] > 0 ? " ± " + digits(1 / Math.sqrt(s.ivar[bin])) : "");
    say(["b", this.data.wave[bin].toFixed(2) + " Å"]);
    say((this.data.about.arms ? "arm " + this.data.armOf(bin) + ", " : "") + "bin " + bin);
    say("flux ", ["b", measured(spectrum)], " " + (this.data.unit === ELECTRONS ? "e/Å" : this.data.unit));
    say(spectrum.ivar[bin] > 0 ? "S/N " + digits(spectrum.flux[bin] * Math.sqrt(spectrum.ivar[bin])) : "no error");
    if (skyless) say("without the sky ", ["b", measured(skyless)]);
    if (this.truth && Number.isFinite(this.truth[bin])) {
      say("R · truth " + digits(this.truth[bin]) + (spectrum.ivar[bin] > 0 ? ", pull "
        + digits((spectrum.flux[bin] - this.truth[bin]) * Math.sqrt(spectrum.ivar[bin])) : ""));
    }
    this.readProducts(say, skyless || spectrum);
    const names = this.data.maskNames(spectrum.mask[bin] | (skyless ? skyless.mask[bin] : 0));
    say("mask ", names.length ? ["masked", names.join(", ")] : "none");
    if (this.fwhm) {
      const width = this.fwhm[bin];
      say(width > 0 ? "FWHM " + digits(width) + " Å, R " + Math.round(this.data.wave[bin] / width) : "no resolution");
    }
    if (this.data.shifts) {
      const shift = (axis) => this.data.shift(axis, this.fibre, this.data.wave[bin]);
      const moved = ["dx", "dy"].filter((axis) => shift(axis) !== null).map((axis) => axis + " " + signed(shift(axis)));
      if (moved.length) say("trace shift " + moved.join(", ") + " pixels");
    }
    this.write(parts);
  }

  // Says the star's model, and a galaxy's rest wavelength with its nearest line.
  readProducts(say, spectrum) {
    const { bin } = this, { galaxy } = this.data.fibres[this.fibre], wave = this.data.wave[bin];
    if (this.star && Number.isFinite(this.star.model[bin])) {
      const model = this.star.model[bin];
      say("model " + digits(model) + (isGood(spectrum, bin)
        ? ", pull " + digits((spectrum.flux[bin] - model) * Math.sqrt(spectrum.ivar[bin])) : ""));
    }
    if (!galaxy || !galaxy.accepted) return;
    const near = this.lines.find(([, line]) => Math.abs(line - wave) < NEAR * wave);
    say("rest wavelength " + (wave / (1 + galaxy.z)).toFixed(2) + " Å" + (near ? ", " + near[0] : ""));
  }

  write(parts) {
    const pieces = [];
    for (const part of parts) {
      if (pieces.length) pieces.push("  ·  ");
      for (const piece of part) {
        if (typeof piece === "string") {
          pieces.push(piece);
          continue;
        }
        const element = document.createElement(piece[0] === "b" ? "b" : "span");
        element.className = piece[0];
        element.textContent = piece[1];
        pieces.push(element);
      }
    }
    $("readout").replaceChildren(...pieces);
  }

  // ---- Drawing

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  // The panels from the top: name, title, weight of the height, function that returns the range of values.
  panels(first, last) {
    const good = (spectrum) => (bin) => isGood(spectrum, bin);
    const list = [["flux", "flux (" + this.data.unit + ")", 3, () =>
      rangeOf(this.spectrum.flux, first, last, good(this.spectrum), true)]];
    if (this.skyless && this.shown.skyless) {
      list.push(["skyless", "flux without the sky", 2.2, () =>
        rangeOf(this.skyless.flux, first, last, good(this.skyless), true)]);
    }
    if (this.fwhm && this.shown.fwhm) {
      list.push(["fwhm", "resolution: FWHM (Å)", 1.1, () => rangeOf(this.fwhm, first, last, () => true, false)]);
    }
    return list;
  }

  // Returns a context to draw on all of a canvas; null while the canvas has no size.
  fresh(canvas) {
    const sharp = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return null;
    canvas.width = Math.round(width * sharp);
    canvas.height = Math.round(height * sharp);
    const context = canvas.getContext("2d");
    context.scale(sharp, sharp);
    context.font = "12px system-ui, sans-serif";
    return context;
  }

  drawScan(colours) {
    const canvas = $("scan"), { star, data } = this;
    canvas.hidden = !(star && this.shown.scan && star.scan.some((value) => Number.isFinite(value)));
    const context = canvas.hidden ? null : this.fresh(canvas);
    if (!context) return;
    const box = { left: MARGIN.left, top: MARGIN.top, width: canvas.clientWidth - MARGIN.left - MARGIN.right };
    box.height = canvas.clientHeight - MARGIN.top - MARGIN.bottom;
    const many = data.velocities.length, scans = [star.scan, ...star.parts.map(([, scan]) => scan)];
    const ranges = scans.map((scan) => rangeOf(scan, 0, many - 1, () => true, true));
    const range = [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
    const axes = new Axes(box, [data.velocities[0], data.velocities[many - 1]], range);
    drawAxes(context, axes, colours, "χ²(v) above its minimum", true, "velocity (km/s)");
    clipped(context, box, () => drawScan(context, axes, data.velocities, star, colours));
  }

  // Draws an arrow for each fibre and wavelength, below a title that says how each axis was measured.
  drawShifts(colours) {
    const canvas = $("shifts"), { data } = this, { shifts } = data;
    canvas.hidden = !(shifts && this.shown.shifts);
    const context = canvas.hidden ? null : this.fresh(canvas);
    if (!context) return;
    const box = { left: MARGIN.left, top: 62, width: canvas.clientWidth - MARGIN.left - MARGIN.right };
    box.height = canvas.clientHeight - box.top - MARGIN.bottom;
    const range = (values, size) => {
      const low = Math.min(...values), high = Math.max(...values), least = 0.02;
      const each = (Math.max(high - low, least) * SHIFT_MARGIN) / (size - 2 * SHIFT_MARGIN);
      return [low - each, Math.max(high, low + least) + each];
    };
    const axes = new Axes(box, range(shifts.u, box.width), range(shifts.waves, box.height));
    const marks = spread(shifts.u, Math.max(2, Math.floor(box.width / 120)))
      .map((fibre) => ({ value: shifts.u[fibre], text: String(data.fibres[fibre].number) }));
    drawAxes(context, axes, colours, "wavelength (Å)", true, "fibre", marks);
    const said = ["trace shift dx: " + shifts.dx.said, "dy: " + shifts.dy.said + (shifts.note ? "; " + shifts.note : "")];
    context.textAlign = "left";
    context.textBaseline = "top";
    said.forEach((line, k) => context.fillText(line, MARGIN.left, 4 + 17 * k, box.width));
    canvas.setAttribute("aria-label", said.join(", "));
    drawShifts(context, axes, data, this.fibre, colours);
  }

  draw() {
    const { canvas, data } = this, width = canvas.clientWidth, height = canvas.clientHeight;
    const context = this.fresh(canvas);
    if (!context) return;
    const style = getComputedStyle(document.documentElement), colours = {};
    for (const name of ["paper", "ink", "soft", "grid", "edge", "line", "band", "masked", "truth", "sky", "select"]) {
      colours[name] = style.getPropertyValue("--" + name).trim();
    }
    this.drawScan(colours);
    this.drawShifts(colours);
    const [first, last] = data.binsBetween(...this.waves);
    const panels = this.panels(first, last);
    const weights = panels.reduce((sum, panel) => sum + panel[2], 0);
    const room = height - MARGIN.top - MARGIN.bottom - MARGIN.between * (panels.length - 1);
    let top = MARGIN.top;
    this.axes = panels.map(([name, title, weight, range], k) => {
      const box = { left: MARGIN.left, top, width: width - MARGIN.left - MARGIN.right };
      box.height = (room * weight) / weights;
      top += box.height + MARGIN.between;
      const axes = new Axes(box, this.waves, this.values[name] || range());
      axes.name = name;
      drawAxes(context, axes, colours, title, k === panels.length - 1);
      clipped(context, box, () => this.drawPanel(context, axes, first, last, colours));
      return axes;
    });
    this.drawPointer(context, colours);
  }

  drawPanel(context, axes, first, last, colours) {
    const { data, shown } = this;
    if (axes.name === "fwhm") {
      drawSteps(context, axes, data, this.fwhm, first, last, () => true, colours.soft);
      return;
    }
    const spectrum = axes.name === "flux" ? this.spectrum : this.skyless;
    if (shown.masked) drawMasked(context, axes, data, spectrum, first, last, colours);
    if (shown.errors) drawBand(context, axes, data, spectrum, first, last, colours.band);
    const line = axes.name === "flux" ? colours.line : colours.sky;
    drawSteps(context, axes, data, spectrum.flux, first, last, (bin) => isGood(spectrum, bin), line);
    if (shown.masked) drawMaskedFlux(context, axes, data, spectrum, first, last, colours.masked);
    if (axes.name === "flux" && shown.truth && this.truth) {
      context.globalAlpha = 0.8; // so that the data below it are still seen
      drawSteps(context, axes, data, this.truth, first, last, () => true, colours.truth);
      context.globalAlpha = 1;
    }
    // Products belong to spectra without the sky: those of the panel below or, if there is none, the frame's own.
    if (axes.name === "flux" && this.skyless) return;
    context.globalAlpha = 0.8;
    if (shown.model && this.star) drawSteps(context, axes, data, this.star.model, first, last, () => true, colours.truth);
    context.globalAlpha = 1;
    if (shown.lines) drawLines(context, axes, this.lines, colours.truth);
  }

  // Draws the bin that is read and the box that is being drawn.
  drawPointer(context, colours) {
    const { gesture, data } = this;
    for (const axes of this.axes) {
      const { box } = axes;
      clipped(context, box, () => {
        if (this.bin !== null) {
          const wave = data.wave[this.bin];
          const left = axes.x(wave - 0.5 * data.step), right = axes.x(wave + 0.5 * data.step);
          context.fillStyle = colours.ink;
          context.globalAlpha = right - left > 3 ? 0.18 : 0.5;
          context.fillRect(left, box.top, Math.max(right - left, 1), box.height);
          context.globalAlpha = 1;
        }
        if (gesture && gesture.kind === "select") {
          const tall = this.isBox(gesture) && axes === gesture.axes;
          const [above, below] = tall ? [gesture.start.y, gesture.at.y] : [box.top, box.top + box.height];
          context.fillStyle = colours.select;
          context.globalAlpha = 0.3;
          context.fillRect(gesture.start.x, above, gesture.at.x - gesture.start.x, below - above);
          context.globalAlpha = 1;
        }
      });
    }
  }
}
