"use strict";
// The same drawing on a canvas, for speed, and as SVG, for export.
(() => {
  // Corners of a marker around (0, 0), or null for a circle.
  const CORNERS = {
    square: [[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]],
    triangle: [[0, -1.1], [1, 0.75], [-1, 0.75]],
    diamond: [[0, -1.2], [1.05, 0], [0, 1.2], [-1.05, 0]],
    drop: [[0, 1.1], [1, -0.75], [-1, -0.75]],
    cross: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4],
      [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
  };
  const HEAD = 0.55; // half the opening of an arrow's head, radians
  const WIDEST = Math.PI / 4; // of a rose's petals, radians

  // Lay a half-clear colour (bytes red, green, blue first) over a pixel.
  function blend(data, at, word, alpha) {
    const under = (data[at + 3] / 255) * (1 - alpha / 255);
    const total = alpha / 255 + under;
    for (let c = 0; c < 3; c++) {
      data[at + c] = ((((word >> (8 * c)) & 255) * alpha) / 255 + data[at + c] * under) / total;
    }
    data[at + 3] = 255 * total;
  }

  class CanvasSurface {
    constructor(context, ratio) {
      this.context = context;
      this.ratio = ratio;
      this.sprites = new Map();
    }
    rect(x, y, w, h, fill) {
      this.context.fillStyle = fill;
      this.context.fillRect(x, y, w, h);
    }
    outline(x, y, w, h, stroke, width) {
      this.context.strokeStyle = stroke;
      this.context.lineWidth = width;
      this.context.strokeRect(x, y, w, h);
    }
    // Markers are many and alike: each kind is drawn once and then copied.
    marker(shape, x, y, r, fill, stroke, hollow) {
      const sprite = this.spriteOf(shape, r, fill, stroke, hollow);
      const half = sprite.width / this.ratio / 2;
      this.context.drawImage(sprite, x - half, y - half, 2 * half, 2 * half);
    }
    spriteOf(shape, r, fill, stroke, hollow) {
      const key = `${shape} ${r} ${fill} ${stroke} ${hollow}`;
      let sprite = this.sprites.get(key);
      if (!sprite) {
        if (this.sprites.size > 4000) this.sprites.clear();
        sprite = this.sprite(shape, r, fill, stroke, hollow);
        this.sprites.set(key, sprite);
      }
      return sprite;
    }
    // Thousands of markers: stamped into an array of pixels, ten times as fast as drawImage
    // where no graphics card helps. `each(stamp)` calls stamp(brush, x, y).
    stamps(each) {
      const { width, height } = this.context.canvas;
      if (!this.layer || this.layer.width !== width || this.layer.height !== height) {
        this.layer = document.createElement("canvas");
        this.layer.width = width;
        this.layer.height = height;
        this.pixels = this.layer.getContext("2d").createImageData(width, height);
      }
      const into = this.pixels.data;
      const words = new Uint32Array(into.buffer);
      words.fill(0);
      each((brush, x, y) => {
        const { side, column, row, word, alpha } = brush;
        const left = Math.round(x * this.ratio - side / 2);
        const top = Math.round(y * this.ratio - side / 2);
        if (!(left >= 0 && top >= 0 && left + side <= width && top + side <= height)) return;
        for (let k = 0; k < word.length; k++) {
          const to = (top + row[k]) * width + left + column[k];
          if (alpha[k] > 250 || words[to] === 0) words[to] = word[k];
          else blend(into, 4 * to, word[k], alpha[k]);
        }
      });
      this.layer.getContext("2d").putImageData(this.pixels, 0, 0);
      this.context.drawImage(this.layer, 0, 0, width / this.ratio, height / this.ratio);
    }
    // The pixels of a marker that are not clear.
    brush(shape, r, fill, stroke, hollow) {
      const sprite = this.spriteOf(shape, r, fill, stroke, hollow);
      if (sprite.brush) return sprite.brush;
      const side = sprite.width;
      const { data } = sprite.getContext("2d").getImageData(0, 0, side, side);
      const all = new Uint32Array(data.buffer);
      const kept = Array.from(all.keys()).filter((p) => data[4 * p + 3] >= 8);
      sprite.brush = {
        side,
        column: Int32Array.from(kept, (p) => p % side),
        row: Int32Array.from(kept, (p) => Math.floor(p / side)),
        word: Uint32Array.from(kept, (p) => all[p]),
        alpha: Uint8Array.from(kept, (p) => data[4 * p + 3]),
      };
      return sprite.brush;
    }
    sprite(shape, r, fill, stroke, hollow) {
      const side = Math.ceil((2.6 * r + 4) * this.ratio);
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = side;
      const context = canvas.getContext("2d");
      context.scale(this.ratio, this.ratio);
      context.translate(side / this.ratio / 2, side / this.ratio / 2);
      context.beginPath();
      if (CORNERS[shape]) {
        CORNERS[shape].forEach(([a, b], k) => context[k ? "lineTo" : "moveTo"](a * r, b * r));
        context.closePath();
      } else context.arc(0, 0, r, 0, 2 * Math.PI);
      if (hollow) {
        context.strokeStyle = fill;
        context.lineWidth = Math.max(1.3, r * 0.45);
      } else {
        context.fillStyle = fill;
        context.fill();
        context.strokeStyle = stroke;
        context.globalAlpha = 0.4;
        context.lineWidth = 0.8;
      }
      context.stroke();
      return canvas;
    }
    line(points, stroke, width, alpha = 1) {
      const context = this.context;
      context.globalAlpha = alpha;
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.lineJoin = "round";
      context.beginPath();
      let pen = false;
      for (const point of points) {
        if (point === null) pen = false;
        else {
          context[pen ? "lineTo" : "moveTo"](point[0], point[1]);
          pen = true;
        }
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    area(shapes, fill) {
      const context = this.context;
      context.fillStyle = fill;
      context.beginPath();
      for (const shape of shapes) {
        shape.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x, y));
        context.closePath();
      }
      context.fill();
    }
    text(x, y, text, fill, anchor = "middle", size = 12, baseline = "middle") {
      const context = this.context;
      context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
      context.fillStyle = fill;
      context.textAlign = anchor === "middle" ? "center" : anchor;
      context.textBaseline = baseline;
      context.fillText(text, x, y);
    }
    clip(x, y, w, h) {
      this.context.save();
      this.context.beginPath();
      this.context.rect(x, y, w, h);
      this.context.clip();
    }
    unclip() {
      this.context.restore();
    }
  }

  class SvgSurface {
    constructor(width, height) {
      this.width = width;
      this.height = height;
      this.stack = [[]];
      this.clips = 0;
    }
    add(tag, attributes, ...children) {
      const node = onlooker.svg(tag, attributes, ...children);
      this.stack[this.stack.length - 1].push(node);
    }
    nodes() {
      return this.stack[0];
    }
    brush(shape, r, fill, stroke, hollow) {
      return (x, y) => this.marker(shape, x, y, r, fill, stroke, hollow);
    }
    stamps(each) {
      each((brush, x, y) => brush(x, y));
    }
    rect(x, y, w, h, fill) {
      this.add("rect", { x: short(x), y: short(y), width: short(w), height: short(h), fill });
    }
    outline(x, y, w, h, stroke, width) {
      this.add("rect", { x: short(x), y: short(y), width: short(w), height: short(h), fill: "none", stroke, "stroke-width": width });
    }
    marker(shape, x, y, r, fill, stroke, hollow) {
      const paint = hollow
        ? { fill: "none", stroke: fill, "stroke-width": short(Math.max(1.3, r * 0.45)) }
        : { fill, stroke, "stroke-width": 0.8, "stroke-opacity": 0.4 };
      if (!CORNERS[shape]) this.add("circle", { cx: short(x), cy: short(y), r: short(r), ...paint });
      else {
        const points = CORNERS[shape].map(([a, b]) => `${short(x + a * r)},${short(y + b * r)}`).join(" ");
        this.add("polygon", { points, ...paint });
      }
    }
    line(points, stroke, width, alpha = 1) {
      let d = "";
      let pen = false;
      for (const point of points) {
        if (point !== null) d += `${pen ? "L" : "M"}${short(point[0])} ${short(point[1])}`;
        pen = point !== null;
      }
      this.add("path", { d, fill: "none", stroke, "stroke-width": width, "stroke-opacity": alpha, "stroke-linejoin": "round" });
    }
    area(shapes, fill) {
      const d = shapes.map((shape) => `M${shape.map(([x, y]) => `${short(x)} ${short(y)}`).join("L")}Z`).join("");
      this.add("path", { d, fill });
    }
    text(x, y, text, fill, anchor = "middle", size = 12, baseline = "middle") {
      const down = { middle: 0.35, top: 0.8, bottom: 0, alphabetic: 0 }[baseline];
      this.add("text", { x: short(x), y: short(y + down * size), fill, "text-anchor": anchor, "font-size": size, "font-family": "sans-serif" }, text);
    }
    clip(x, y, w, h) {
      const id = `clip${++this.clips}`;
      this.add("clipPath", { id }, onlooker.svg("rect", { x, y, width: w, height: h }));
      this.stack.push([]);
      this.clipId = id;
    }
    unclip() {
      const children = this.stack.pop();
      this.add("g", { "clip-path": `url(#${this.clipId})` }, children);
    }
    toString(background) {
      const root = onlooker.svg("svg", {
        width: this.width, height: this.height,
        viewBox: `0 0 ${this.width} ${this.height}`,
      }, onlooker.svg("rect", { width: this.width, height: this.height, fill: background }), this.nodes());
      return new XMLSerializer().serializeToString(root);
    }
  }

  const short = (x) => Number(x.toFixed(2));

  // A petal of a rose: from the middle it widens outward, `width` in radians.
  function wedge(x, y, angle, length, width) {
    const at = (turn) => [x + length * Math.cos(turn), y - length * Math.sin(turn)];
    const n = Math.max(2, Math.ceil(width / 0.12)); // corners of its round end
    return [[x, y], ...Array.from({ length: n + 1 }, (_, k) => at(angle + width * (k / n - 0.5)))];
  }

  // Both know arrows by way of lines, and roses by way of wedges.
  for (const Surface of [CanvasSurface, SvgSurface]) {
    Surface.prototype.arrow = function arrow(x, y, dx, dy, stroke, halo) {
      const size = Math.hypot(dx, dy);
      if (size < 1.5) {
        this.marker("circle", x, y, 1.6, stroke, halo, false);
        return;
      }
      const head = Math.min(7, 0.45 * size + 1.5);
      const turn = Math.atan2(dy, dx);
      const tip = [x + dx / 2, y + dy / 2];
      const barb = (a) => [tip[0] - head * Math.cos(turn + a), tip[1] - head * Math.sin(turn + a)];
      const points = [[x - dx / 2, y - dy / 2], tip, null, barb(HEAD), tip, barb(-HEAD)];
      this.line(points, halo, 3.6, 0.75);
      this.line(points, stroke, 1.5);
    };
    // `petals` are [angle, length] with angles counter-clockwise, as in mathematics. The rim that
    // the longest reaches shows where the middle is: a petal alone looks like an arrow's head.
    Surface.prototype.rose = function rose(x, y, petals, reach, fill, rim, halo = null) {
      const directions = new Set(petals.map(([angle]) => Math.round(1000 * Math.cos(angle)) + 4000 * Math.round(1000 * Math.sin(angle))));
      const width = Math.min(WIDEST, (0.85 * 2 * Math.PI) / directions.size);
      const wedges = petals.filter(([, length]) => length > 0.3).map(([angle, length]) => wedge(x, y, angle, length, width));
      const ring = wedge(x, y, 0, reach, 2 * Math.PI).slice(1);
      if (halo) this.line([...ring, null, ...wedges.flatMap((corners) => [...corners, corners[0], null])], halo, 2.4, 0.7);
      this.line(ring, rim, 1);
      this.area(wedges, fill);
    };
  }

  onlooker.CanvasSurface = CanvasSurface;
  onlooker.SvgSurface = SvgSurface;
})();
