import type { Context } from 'koa'
import type { Status } from '../../shared/api/api.ts'
import { readBytes } from '../http/body.ts'
import type { OwnApi } from './own-api.ts'
import { type Markup, type Part, markup } from './markup.ts'
import { newCode } from '../util/expiring-map.ts'
import type { Times } from './times.ts'

/** What a view knows of the request of a browser. */
export type PageRequest = {
  readonly api: OwnApi
  /** `GET /status` of this request. */
  readonly status: Status
  /** The parts of the path that the view names. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The path of the view, without the query. */
  readonly path: string
  /** Writes times in the zone of the reader. */
  readonly times: Times
  readonly formKey: string
}

export type Shown = {
  /** Of the window and of the view; plain text. */
  readonly title: string
  readonly content: Markup
  readonly status?: number
}

/** What an action has done, in a sentence, and the path of the view that says it; by default its own. */
export type Done = { readonly notice: string; readonly to?: string }

/** What a person has sent with a form. */
export type Action = (request: PageRequest, form: URLSearchParams) => Promise<Done>

/** One view of the page, at a path such as `/ui/events/:id`. `GET` shows it and changes nothing. */
export type View = {
  readonly path: string
  readonly show: (request: PageRequest) => Promise<Shown>
  /** `POST <path>/<name>`. Each throws a `DoorwardError` where it cannot be done, which the view then says. */
  readonly actions?: Readonly<Record<string, Action>>
}

type FormOptions = {
  readonly label: string
  /** Hidden values. */
  readonly fields?: Readonly<Record<string, string>>
  /** Fields that the person fills in, before the button. */
  readonly content?: Part
  /** Primary buttons are what the view is for; those of danger cannot be undone. */
  readonly kind?: 'primary' | 'danger'
  /** What the button is for, where its label alone does not say it to a screen reader. */
  readonly describe?: string
}

/** A form with one button, which posts to an action of this view, or of the view at `at`. */
export const actionForm = (
  { path, formKey }: Pick<PageRequest, 'path' | 'formKey'>,
  action: string,
  { label, fields = {}, content, kind, describe }: FormOptions,
  at = path,
): Markup => markup`
  <form method="post" action="${at}/${action}">
    <input type="hidden" name="form-key" value="${formKey}"><input type="hidden" name="press" value="${newCode()}">${Object.entries(
      fields,
    ).map(
      ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">`,
    )}${content}<button${kind && markup` class="${kind}"`}${
      describe !== undefined && markup` aria-label="${label}: ${describe}"`
    }>${label}</button>
  </form>`

const maxFormBytes = 64 * 1024

/** The fields of a form; none of them is longer than a remark. Throws `body-too-large`, `body-aborted`. */
export const readForm = async (ctx: Context): Promise<URLSearchParams> =>
  new URLSearchParams((await readBytes(ctx, maxFormBytes)).toString())
