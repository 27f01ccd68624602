-- What pg_dump of PostgreSQL 15 writes of schemas beside public, and what there is then. The part between the
-- lines is its own, without owners, privileges and \restrict.
SET client_min_messages = warning;
--- begin
--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: Other One; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA "Other One";


--
-- Name: app; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA app;


--
-- Name: SCHEMA app; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA app IS 'of app';


--
-- Name: mood; Type: TYPE; Schema: app; Owner: -
--

CREATE TYPE app.mood AS ENUM (
    'sad',
    'happy'
);


--
-- Name: TYPE mood; Type: COMMENT; Schema: app; Owner: -
--

COMMENT ON TYPE app.mood IS 'm';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: T x; Type: TABLE; Schema: Other One; Owner: -
--

CREATE TABLE "Other One"."T x" (
    id integer,
    m app.mood[] DEFAULT '{sad}'::app.mood[]
);


--
-- Name: numbers; Type: SEQUENCE; Schema: app; Owner: -
--

CREATE SEQUENCE app.numbers
    START WITH 5
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: t; Type: TABLE; Schema: app; Owner: -
--

CREATE TABLE app.t (
    id integer NOT NULL,
    m app.mood DEFAULT 'sad'::app.mood,
    p integer,
    what text,
    n integer,
    g integer NOT NULL,
    CONSTRAINT t_n_check CHECK ((n > 0))
);


--
-- Name: TABLE t; Type: COMMENT; Schema: app; Owner: -
--

COMMENT ON TABLE app.t IS 'tt';


--
-- Name: t_g_seq; Type: SEQUENCE; Schema: app; Owner: -
--

ALTER TABLE app.t ALTER COLUMN g ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME app.t_g_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: t_id_seq; Type: SEQUENCE; Schema: app; Owner: -
--

CREATE SEQUENCE app.t_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: t_id_seq; Type: SEQUENCE OWNED BY; Schema: app; Owner: -
--

ALTER SEQUENCE app.t_id_seq OWNED BY app.t.id;


--
-- Name: v; Type: VIEW; Schema: app; Owner: -
--

CREATE VIEW app.v AS
 SELECT t.what,
    o.m
   FROM (app.t
     JOIN "Other One"."T x" o USING (id))
  WHERE (t.m = 'sad'::app.mood);


--
-- Name: t; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.t (
    id integer NOT NULL,
    what text,
    x integer DEFAULT nextval('app.numbers'::regclass)
);


--
-- Name: w; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.w AS
 SELECT v.what
   FROM app.v;


--
-- Name: t id; Type: DEFAULT; Schema: app; Owner: -
--

ALTER TABLE ONLY app.t ALTER COLUMN id SET DEFAULT nextval('app.t_id_seq'::regclass);


--
-- Data for Name: T x; Type: TABLE DATA; Schema: Other One; Owner: -
--

COPY "Other One"."T x" (id, m) FROM stdin;
1	{sad}
2	{sad}
\.


--
-- Data for Name: t; Type: TABLE DATA; Schema: app; Owner: -
--

COPY app.t (id, m, p, what, n, g) FROM stdin;
1	sad	1	x	1	1
2	happy	2	y	2	2
\.


--
-- Data for Name: t; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.t (id, what, x) FROM stdin;
1	a	5
2	b	6
\.


--
-- Name: numbers; Type: SEQUENCE SET; Schema: app; Owner: -
--

SELECT pg_catalog.setval('app.numbers', 6, true);


--
-- Name: t_g_seq; Type: SEQUENCE SET; Schema: app; Owner: -
--

SELECT pg_catalog.setval('app.t_g_seq', 2, true);


--
-- Name: t_id_seq; Type: SEQUENCE SET; Schema: app; Owner: -
--

SELECT pg_catalog.setval('app.t_id_seq', 2, true);


--
-- Name: t t_pkey; Type: CONSTRAINT; Schema: app; Owner: -
--

ALTER TABLE ONLY app.t
    ADD CONSTRAINT t_pkey PRIMARY KEY (id);


--
-- Name: t t_what_key; Type: CONSTRAINT; Schema: app; Owner: -
--

ALTER TABLE ONLY app.t
    ADD CONSTRAINT t_what_key UNIQUE (what);


--
-- Name: t t_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.t
    ADD CONSTRAINT t_pkey PRIMARY KEY (id);


--
-- Name: t_n_idx; Type: INDEX; Schema: app; Owner: -
--

CREATE INDEX t_n_idx ON app.t USING btree (n) WHERE (m = 'happy'::app.mood);


--
-- Name: T x T x_id_fkey; Type: FK CONSTRAINT; Schema: Other One; Owner: -
--

ALTER TABLE ONLY "Other One"."T x"
    ADD CONSTRAINT "T x_id_fkey" FOREIGN KEY (id) REFERENCES app.t(id) ON DELETE CASCADE;


--
-- Name: t t_p_fkey; Type: FK CONSTRAINT; Schema: app; Owner: -
--

ALTER TABLE ONLY app.t
    ADD CONSTRAINT t_p_fkey FOREIGN KEY (p) REFERENCES public.t(id);


--
-- PostgreSQL database dump complete
--


--- end
RESET search_path;
SELECT * FROM w;
SELECT * FROM app.v;
SELECT * FROM app.t ORDER BY id;
SELECT * FROM t ORDER BY id;
SELECT * FROM "Other One"."T x" ORDER BY id;
INSERT INTO app.t (p) VALUES (2) RETURNING id, m, g;
INSERT INTO t (id) VALUES (3) RETURNING x;
\dn
\d app.t
\d t
\d "Other One"."T x"
\dT app.*
SELECT obj_description('app'::regnamespace), obj_description('app.t'::regclass), obj_description('app.mood'::regtype);
