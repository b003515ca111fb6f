// How panels are drawn: axes, spectra as steps with errors, masked bins. All of it draws only what it is given.

const MANY_BINS = 300; // with more bins, single lines may run out of a panel, so that the rest is seen

const SHIFT_MARGIN = 36; // pixels around the trace shifts, more than the longest arrow

// One panel: its box in pixels, a range of wavelengths and a range of values.
class Axes {
  constructor(box, waves, values) {
    Object.assign(this, { box, waves, values });
  }

  x(wave) {
    return this.box.left + ((wave - this.waves[0]) / (this.waves[1] - this.waves[0])) * this.box.width;
  }

  y(value) {
    return this.box.top + (1 - (value - this.values[0]) / (this.values[1] - this.values[0])) * this.box.height;
  }

  wave(x) {
    return this.waves[0] + ((x - this.box.left) / this.box.width) * (this.waves[1] - this.waves[0]);
  }

  value(y) {
    return this.values[1] - ((y - this.box.top) / this.box.height) * (this.values[1] - this.values[0]);
  }
}

// Returns the range of the values [first, last] that `use` takes, with some room; it includes 0 if `withZero`.
function rangeOf(values, first, last, use, withZero) {
  const taken = [];
  for (let bin = first; bin <= last; ++bin) if (use(bin) && Number.isFinite(values[bin])) taken.push(values[bin]);
  if (!taken.length) return [0, 1];
  taken.sort((a, b) => a - b);
  const many = taken.length > MANY_BINS;
  const low = percentile(taken, many ? 0.005 : 0), high = percentile(taken, many ? 0.985 : 1);
  const spread = Math.max(high - low, 1e-6 * Math.abs(high), 1e-30);
  const bottom = low - 0.12 * spread;
  return [withZero ? Math.min(bottom, 0) : bottom, high + (many ? 0.4 : 0.12) * spread];
}

function clipped(context, box, draw) {
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  draw();
  context.restore();
}

// Draws lines and numbers of both axes; those of the horizontal axis and its title `across` are written only if
// `last`. `marks`: the ticks of the horizontal axis, {value, text} each.
function drawAxes(context, axes, colours, title, last, across = "wavelength (Å)", marks = null) {
  const { box } = axes;
  const ticks = marks || ticksBetween(axes.waves[0], axes.waves[1], Math.max(3, box.width / 80));
  context.lineWidth = 1;
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.soft;
  context.beginPath();
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const { value, text } of ticksBetween(axes.values[0], axes.values[1], Math.max(3, box.height / 36))) {
    const y = Math.round(axes.y(value)) + 0.5;
    context.moveTo(box.left, y);
    context.lineTo(box.left + box.width, y);
    context.fillText(text, box.left - 6, y);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const { value, text } of ticks) {
    const x = Math.round(axes.x(value)) + 0.5;
    context.moveTo(x, box.top);
    context.lineTo(x, box.top + box.height);
    if (last) context.fillText(text, x, box.top + box.height + 5);
  }
  context.stroke();
  context.strokeStyle = colours.edge;
  context.strokeRect(box.left + 0.5, Math.round(box.top) + 0.5, box.width - 1, Math.round(box.height) - 1);
  context.textAlign = "left";
  context.textBaseline = "bottom";
  context.fillText(title, box.left, box.top - 4);
  if (last) {
    context.textAlign = "right";
    context.fillText(across, box.left + box.width, box.top + box.height + 36);
  }
}

// Draws masked bins: a stripe of the panel's height, and a mark at its foot that is seen at any zoom.
function drawMasked(context, axes, data, spectrum, first, last, colours) {
  const { box } = axes;
  for (let bin = first; bin <= last; ++bin) {
    if (isGood(spectrum, bin)) continue;
    const from = bin;
    while (bin < last && !isGood(spectrum, bin + 1) && !data.starts.has(bin + 1)) ++bin;
    const left = axes.x(data.wave[from] - 0.5 * data.step), right = axes.x(data.wave[bin] + 0.5 * data.step);
    const width = Math.max(right - left, 2);
    context.fillStyle = colours.masked;
    context.globalAlpha = 0.16;
    context.fillRect(left, box.top, width, box.height);
    context.globalAlpha = 1;
    context.fillRect(left, box.top + box.height - 6, width, 6);
  }
}

// Calls draw(from, to) for each stretch of an arm's bins that `use` takes.
function eachStretch(data, first, last, use, draw) {
  for (let bin = first; bin <= last; ++bin) {
    if (!use(bin)) continue;
    const from = bin;
    while (bin < last && use(bin + 1) && !data.starts.has(bin + 1)) ++bin;
    draw(from, bin);
  }
}

function drawBand(context, axes, data, spectrum, first, last, colour) {
  context.fillStyle = colour;
  eachStretch(data, first, last, (bin) => isGood(spectrum, bin), (from, to) => {
    const edge = (bin, sign) => axes.y(spectrum.flux[bin] + sign / Math.sqrt(spectrum.ivar[bin]));
    context.beginPath();
    for (let bin = from; bin <= to; ++bin) {
      context.lineTo(axes.x(data.wave[bin] - 0.5 * data.step), edge(bin, 1));
      context.lineTo(axes.x(data.wave[bin] + 0.5 * data.step), edge(bin, 1));
    }
    for (let bin = to; bin >= from; --bin) {
      context.lineTo(axes.x(data.wave[bin] + 0.5 * data.step), edge(bin, -1));
      context.lineTo(axes.x(data.wave[bin] - 0.5 * data.step), edge(bin, -1));
    }
    context.fill();
  });
}

// Draws values as steps as wide as their bins, with gaps where `use` takes none.
function drawSteps(context, axes, data, values, first, last, use, colour) {
  context.strokeStyle = colour;
  context.lineWidth = (last - first) / axes.box.width > 1 ? 1 : 1.5;
  context.lineJoin = "round";
  context.beginPath();
  eachStretch(data, first, last, (bin) => use(bin) && Number.isFinite(values[bin]), (from, to) => {
    context.moveTo(axes.x(data.wave[from] - 0.5 * data.step), axes.y(values[from]));
    for (let bin = from; bin <= to; ++bin) {
      context.lineTo(axes.x(data.wave[bin] - 0.5 * data.step), axes.y(values[bin]));
      context.lineTo(axes.x(data.wave[bin] + 0.5 * data.step), axes.y(values[bin]));
    }
  });
  context.stroke();
}

// Draws the flux of masked bins that still have an ivar, as dots.
function drawMaskedFlux(context, axes, data, spectrum, first, last, colour) {
  context.fillStyle = colour;
  for (let bin = first; bin <= last; ++bin) {
    if (isGood(spectrum, bin) || !(spectrum.ivar[bin] > 0) || !Number.isFinite(spectrum.flux[bin])) continue;
    context.beginPath();
    context.arc(axes.x(data.wave[bin]), axes.y(spectrum.flux[bin]), 2, 0, 2 * Math.PI);
    context.fill();
  }
}

// Draws emission lines at a redshift: [name, wavelength]. Of lines closer than their names are wide, one is named.
function drawLines(context, axes, lines, colour) {
  const { box } = axes;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 1;
  context.textAlign = "left";
  context.textBaseline = "top";
  context.setLineDash([2, 3]);
  context.beginPath();
  let free = -Infinity;
  for (const [name, wave] of [...lines].sort((a, b) => a[1] - b[1])) {
    const x = Math.round(axes.x(wave)) + 0.5;
    context.moveTo(x, box.top);
    context.lineTo(x, box.top + box.height);
    if (x < free) continue;
    context.fillText(name, x + 3, box.top + 3);
    free = x + 6 + context.measureText(name).width;
  }
  context.stroke();
  context.setLineDash([]);
}

function armColour(name, colours) {
  return { B: colours.sky, R: colours.masked, Z: colours.select }[name[0]] || colours.soft;
}

// Draws chi-square above its minimum by velocity, in all and for each arm, with the star's velocity.
function drawScan(context, axes, velocities, star, colours) {
  context.lineWidth = 1.5;
  context.textAlign = "left";
  context.textBaseline = "top";
  let x = axes.box.left + 8;
  for (const [name, scan] of [...star.parts, [star.parts.length ? "all arms" : "", star.scan]]) {
    context.strokeStyle = context.fillStyle = scan === star.scan ? colours.line : armColour(name, colours);
    context.beginPath();
    velocities.forEach((velocity, k) => context.lineTo(axes.x(velocity), axes.y(scan[k])));
    context.stroke();
    context.fillText(name, x, axes.box.top + 6);
    x += context.measureText(name).width + 12;
  }
  if (star.velocity === null) return;
  context.strokeStyle = colours.truth;
  context.beginPath();
  context.moveTo(axes.x(star.velocity), axes.box.top);
  context.lineTo(axes.x(star.velocity), axes.box.top + axes.box.height);
  context.stroke();
}

// Returns at most `count` fibres, spread evenly over the CCD.
function spread(places, count) {
  const low = Math.min(...places), high = Math.max(...places), found = new Set();
  for (let k = 0; k < count; ++k) {
    const wanted = count > 1 ? low + ((high - low) * k) / (count - 1) : low;
    let nearest = 0;
    places.forEach((place, fibre) => {
      if (Math.abs(place - wanted) < Math.abs(places[nearest] - wanted)) nearest = fibre;
    });
    found.add(nearest);
  }
  return [...found];
}

function drawArrow(context, x, y, dx, dy) {
  const length = Math.hypot(dx, dy), head = Math.min(7, 0.6 * length), turn = Math.atan2(dy, dx);
  context.beginPath();
  context.arc(x, y, 1.5, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y + dy);
  for (const side of [-2.7, 2.7]) {
    context.moveTo(x + dx, y + dy);
    context.lineTo(x + dx + head * Math.cos(turn + side), y + dy + head * Math.sin(turn + side));
  }
  context.stroke();
}

// Draws the trace shifts of some fibres and of the one that is shown, as arrows by fibre and wavelength, with a
// scale.
function drawShifts(context, axes, data, fibre, colours) {
  const { shifts } = data, { box } = axes, many = Math.max(2, Math.floor(box.width / 60));
  const value = (axis, one, k) => (shifts[axis].values ? shifts[axis].values[one][k] : 0);
  const all = data.fibres.flatMap((_, one) => shifts.waves.map((_, k) => Math.hypot(value("dx", one, k), value("dy", one, k))));
  const longest = all.reduce((most, one) => Math.max(most, one), 0);
  const scale = longest > 0 ? 0.8 * SHIFT_MARGIN / longest : 0; // pixels of the screen for one of the CCD
  context.lineWidth = 1.5;
  for (const one of [...spread(shifts.u, many).filter((other) => other !== fibre), fibre]) {
    context.strokeStyle = context.fillStyle = one === fibre ? colours.truth : colours.line;
    shifts.waves.forEach((wave, k) =>
      drawArrow(context, axes.x(shifts.u[one]), axes.y(wave), scale * value("dx", one, k), -scale * value("dy", one, k)));
  }
  if (!scale) return;
  const power = Math.pow(10, Math.floor(Math.log10(longest)));
  const key = [5, 2, 1].map((factor) => factor * power).find((size) => size <= longest * 1.000001);
  context.strokeStyle = context.fillStyle = colours.ink;
  const x = box.left + box.width - scale * key;
  drawArrow(context, x, box.top - 10, scale * key, 0);
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(Number(key.toPrecision(1)) + " pixels", x - 8, box.top - 10);
}
