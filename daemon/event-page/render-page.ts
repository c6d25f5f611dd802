import { createHash } from 'node:crypto'
import { isFinal } from '../events/event-record.ts'
import type { RenderedPage } from '../oauth/login/callback-page.ts'
import { readAsset, readStyle } from '../read-asset.ts'
import { type EventView, eventContent, titleOf } from './event-page.ts'
import { markup } from './markup.ts'

/** Makes the page of an event; `refreshPath` is where it looks again while the event goes on. */
export type RenderEvent = (view: EventView, refreshPath: string) => RenderedPage

/** Fills in the page of `assets/event`. No script may run, and only this one style applies. */
export const loadEventPage = (): RenderEvent => {
  const template = readAsset('event/page.html')
  const style = readStyle('event')
  const styleHash = createHash('sha256').update(style).digest('base64')
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action 'self'`,
    `frame-ancestors 'none'`,
  ].join('; ')
  return (view, refreshPath) => {
    const { event } = view
    const values: Readonly<Record<string, string>> = {
      style: `<style>${style}</style>`,
      title: markup`${titleOf(event)}`.html,
      state: event.state,
      content: eventContent(view).html,
      // After a second at most, browsers put it in the place of the page it follows in the history.
      refresh: isFinal(event.state)
        ? ''
        : markup`<meta http-equiv="refresh" content="1; url=${refreshPath}" />`.html,
    }
    return {
      html: template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? ''),
      contentSecurityPolicy,
    }
  }
}
