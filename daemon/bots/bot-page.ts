import type { BotAbility } from '../../shared/api/bots.ts'
import { escapeHtml, loadPage, type RenderedPage } from '../http/body.ts'
import { loadCallbackPage } from '../oauth/login/callback-page.ts'
import { listPermissions, type Manifest } from './manifest.ts'

type BotPage = {
  readonly manifest: Manifest
  readonly can: BotAbility
  /** The organization; without one, the person who presses. */
  readonly owner: string | undefined
  /** GitHub's address that takes the manifest. */
  readonly action: string
  /** Whether GitHub's deliveries reach this machine. */
  readonly isReachable: boolean
}

/** Returns a function that renders the page of `assets/bot`, whose one button posts the manifest to GitHub. */
export const loadBotPage = (): ((page: BotPage) => RenderedPage) => {
  const fill = loadPage('bot')
  return ({ manifest, can, owner, action, isReachable }) => {
    const { origin, host } = new URL(action)
    const { html, contentSecurityPolicy } = fill({
      name: escapeHtml(manifest.name),
      owner: escapeHtml(owner ?? 'you'),
      permissions: listPermissions(can)
        .map(({ name, level, why }) => `<dt>${name}: ${level}</dt><dd>${escapeHtml(why)}</dd>`)
        .join('\n'),
      events: escapeHtml(manifest.default_events.map(toWords).join(', ')),
      address: escapeHtml(describeAddress(manifest.hook_attributes.url, isReachable)),
      action: escapeHtml(action),
      manifest: escapeHtml(JSON.stringify(manifest)),
      host: escapeHtml(host),
    })
    // The form goes to GitHub and nowhere else.
    return {
      html,
      contentSecurityPolicy: contentSecurityPolicy.replace(
        `form-action 'none'`,
        `form-action ${origin}`,
      ),
    }
  }
}

const toWords = (event: string): string => event.replaceAll('_', ' ')

const describeAddress = (url: string, isReachable: boolean): string =>
  isReachable
    ? `To ${url}, signed with a secret that only GitHub and this machine have.`
    : `This machine has no address. GitHub sends to ${url}, which leads nowhere, and keeps what it sent for three days: doorward reads it there.`

/** The page that a reload shows. */
export const renderUsed = (): RenderedPage =>
  loadCallbackPage()({
    kind: 'ignored',
    title: 'This page opens once',
    message: 'It was opened before. Nothing is lost: go back to that window, or make another page.',
    advice: 'For another page:',
    command: 'doorward bot create github',
  })
