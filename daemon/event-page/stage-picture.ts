import type { EventDetail } from '../../shared/api.ts'
import { duration } from '../../shared/text.ts'
import { type Markup, markup } from './markup.ts'
import { type Bar, barsOf, stagesOf } from '../../shared/event-stages.ts'

/**
 * The stages of an event as rows with a bar each. The bars are SVG, whose attributes are no inline style,
 * which the page's policy would forbid.
 */
export const stagePicture = (event: EventDetail): Markup => markup`
    <section>
      <h2>Stages</h2>
      <ol class="stages">${barsOf(stagesOf(event)).map(rowOf)}</ol>
    </section>`

const rowOf = ({ row, from, length }: Bar): Markup => {
  const { name, state, ms, note } = row
  const said = [ms === undefined ? '' : duration(ms), note ?? ''].filter(Boolean).join(', ')
  return markup`
        <li data-state="${state}"><span class="dot" aria-hidden="true"></span><span class="name">${name}</span>
          <svg class="bar" aria-hidden="true">${
            length > 0
              ? markup`<rect class="track" width="100%" height="100%" rx="4" /><rect class="fill" x="${from}%" width="${length}%" height="100%" rx="4" />`
              : undefined
          }</svg>
          <span class="said">${said}</span></li>`
}
