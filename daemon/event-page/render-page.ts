import { isFinal } from '../events/event-record.ts'
import { type RenderedPage, loadPage } from '../http/page.ts'
import { type EventView, eventContent, titleOf } from './event-page.ts'
import { markup } from './markup.ts'

/** Makes the page of an event; `refreshPath` is where it looks again while the event goes on. */
export type RenderEvent = (view: EventView, refreshPath: string) => RenderedPage

/** Fills in the page of `assets/event`. */
export const loadEventPage = (): RenderEvent => {
  const fill = loadPage('event', `'self'`)
  return (view, refreshPath) => {
    const { event } = view
    return fill({
      title: markup`${titleOf(event)}`.html,
      state: event.state,
      content: eventContent(view).html,
      // After a second at most, browsers put it in the place of the page it follows in the history.
      refresh: isFinal(event.state)
        ? ''
        : markup`<meta http-equiv="refresh" content="1; url=${refreshPath}" />`.html,
    })
  }
}
