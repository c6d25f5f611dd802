import { hash } from 'node:crypto'
import type { EventDetail } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Action, PageRequest } from '../view.ts'

/* What a person may do with an event. Each is an action of the local API, which says why it cannot be done. */

const act = async ({ api, params }: PageRequest, name: string, body?: unknown): Promise<unknown> =>
  api.post(`${apiPath(params)}/${name}`, body)

export const apiPath = ({ id = '' }: PageRequest['params']): string =>
  `/events/${encodeURIComponent(id)}`

/** The list of what waits leads back to itself. */
const backFrom = (form: URLSearchParams) =>
  form.get('from') === 'waiting' ? { to: '/ui/waiting' } : {}

/** The digest of the answer that the person has seen: an older one does not count. */
const seen = (form: URLSearchParams) => ({ where: 'page', digest: form.get('digest') ?? '' })

/** A digest of the texts that a dry run has shown. */
export const previewDigest = ({ targets }: Pick<EventDetail, 'targets'>): string =>
  hash('sha256', JSON.stringify(targets.map(({ target, preview }) => [target, preview])))

export const eventActions: Readonly<Record<string, Action>> = {
  retry: async (request) => {
    await act(request, 'retry')
    return { notice: 'The event runs again.' }
  },
  'run-again': async (request) => {
    await act(request, 'retry?again=true')
    return { notice: 'The event runs again, as its webhook is now.' }
  },
  cancel: async (request) => {
    await act(request, 'cancel')
    return { notice: 'The event is being cancelled.' }
  },
  approve: async (request, form) => {
    const kept = new Set(form.getAll('with').map(Number))
    const count = Math.min(Number(form.get('comments')) || 0, 1000)
    const without = [...Array(count).keys()].filter((place) => !kept.has(place))
    await act(request, 'approve', { without, ...seen(form) })
    return { notice: 'It is being sent.', ...backFrom(form) }
  },
  reject: async (request, form) => {
    await act(request, 'reject', seen(form))
    return { notice: 'Nothing is sent.', ...backFrom(form) }
  },
  again: async (request, form) => {
    await act(request, 'again', { remark: form.get('remark') ?? '', ...seen(form) })
    return { notice: 'The agent runs again, with your words.', ...backFrom(form) }
  },
  deliver: async (request, form) => {
    const { api, params } = request
    const event = await api.get<EventDetail>(apiPath(params))
    if (previewDigest(event) !== form.get('shown'))
      throw new DoorwardError(
        'approval-mismatch',
        'nothing was sent: you have seen an older answer',
      )
    await act(request, 'deliver')
    return { notice: 'It is being sent.' }
  },
  forget: async ({ api, params }) => {
    await api.delete(apiPath(params))
    return { notice: 'Its texts are forgotten.' }
  },
}
