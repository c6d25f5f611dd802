// Draws the screen of a terminal as SVG whose text stays text, in the colours that doorward uses.

const cell = { width: 8.4, height: 19 }
const margin = 16
const bar = 34

const palette = [
  '#45475a',
  '#f38ba8',
  '#a6e3a1',
  '#f9e2af',
  '#89b4fa',
  '#cba6f7',
  '#94e2d5',
  '#bac2de',
]
const foreground = '#cdd6f4'

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** `ESC [ 1 ; 32 m` changes the style of the following text (ECMA-48, SGR). */
const changed = (look, codes) =>
  codes.reduce((now, code) => {
    if (code === 0) return {}
    if (code === 1) return { ...now, bold: true }
    if (code === 2) return { ...now, dim: true }
    if (code === 22) return { ...now, bold: false, dim: false }
    if (code >= 30 && code <= 37) return { ...now, color: palette[code - 30] }
    if (code === 90) return { ...now, color: '#7f849c' }
    if (code >= 91 && code <= 97) return { ...now, color: palette[code - 90] }
    if (code === 39) return { ...now, color: undefined }
    return now
  }, look)

/** Splits a line into runs of one style, each with its first column. */
const runsOf = (line, first) => {
  let look = first
  let column = 0
  const runs = []
  for (const part of line.split(/(\u001b\[[\d;]*m|\u000f|\u000e|\u001b\([B0])/)) {
    const [, codes] = /^\u001b\[([\d;]*)m$/.exec(part) ?? []
    if (codes !== undefined) look = changed(look, codes.split(';').map(Number))
    else if (part !== '' && !/^[\u000e\u000f\u001b]/.test(part)) {
      const length = [...part].length
      if (part.trim() !== '') runs.push({ text: part, column, length, look })
      column += length
    }
  }
  return { runs, look }
}

const drawRun = ({ text, column, length, look }, y) => {
  const attributes = [
    `x="${(margin + column * cell.width).toFixed(1)}" y="${y}"`,
    `textLength="${(length * cell.width).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`,
    `fill="${look.color ?? foreground}"`,
    ...(look.bold ? ['font-weight="bold"'] : []),
    ...(look.dim ? ['opacity="0.65"'] : []),
  ]
  return `<text ${attributes.join(' ')} xml:space="preserve">${escaped(text)}</text>`
}

/** Draws the text of a terminal with its escape sequences, `columns` wide. */
export const drawTerminal = (text, { columns, title }) => {
  const lines = text.trimEnd().split('\n')
  const width = Math.ceil(columns * cell.width + 2 * margin)
  const height = bar + lines.length * cell.height + margin
  let look = {}
  const drawn = lines.flatMap((line, index) => {
    const found = runsOf(line, look)
    ;({ look } = found)
    const y = bar + (index + 0.75) * cell.height
    return found.runs.map((run) => drawRun(run, y.toFixed(1)))
  })
  const dots = ['#f38ba8', '#f9e2af', '#a6e3a1'].map(
    (color, at) => `<circle cx="${margin + 6 + at * 18}" cy="17" r="5.5" fill="${color}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<rect width="${width}" height="${height}" rx="10" fill="#1e1e2e"/>
${dots.join('')}
${drawn.join('\n')}
</svg>
`
}
