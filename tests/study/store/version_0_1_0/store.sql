BEGIN TRANSACTION;
CREATE TABLE account_events (
	event_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	password_hash VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE attention_labels (
	event_id INTEGER NOT NULL, 
	submit_id VARCHAR NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	rater_kind VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	p_positive FLOAT, 
	probabilities JSON, 
	prob_method VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	"order" VARCHAR NOT NULL, 
	unscored_reason VARCHAR NOT NULL, 
	seconds FLOAT, 
	rubric_hash VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id), 
	UNIQUE (submit_id)
);
CREATE TABLE background_answers (
	event_id INTEGER NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	question VARCHAR NOT NULL, 
	answer VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE batch_events (
	event_id INTEGER NOT NULL, 
	chunk VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	batch_id VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE batches (
	chunk VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	base_url VARCHAR NOT NULL, 
	at_most_usd FLOAT, 
	questions JSON NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (chunk)
);
CREATE TABLE claims (
	task_id VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rubric_hash VARCHAR NOT NULL, 
	"order" VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	claimed_at VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	PRIMARY KEY (task_id), 
	UNIQUE (rater_id, unit_id, rubric, rubric_hash, draw)
);
INSERT INTO "claims" VALUES('95c556cf94638d8941f20bfd','ann','p0003|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.071+00:00','labelled',2);
INSERT INTO "claims" VALUES('62e6e253a0449ead24c5afd5','ann','p0003|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.094+00:00','labelled',4);
INSERT INTO "claims" VALUES('4fdf1e7e6e414cb9379e2d8c','ann','p0001|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.107+00:00','labelled',6);
INSERT INTO "claims" VALUES('8190f4f4a65b8608c2a0c8de','ann','p0001|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.115+00:00','labelled',8);
INSERT INTO "claims" VALUES('ebf8037974b6586904ac8fb9','ann','p0002|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.123+00:00','labelled',10);
INSERT INTO "claims" VALUES('5c2880409071c40ad33501a4','ann','p0002|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.129+00:00','labelled',12);
INSERT INTO "claims" VALUES('b342e183f2f107759b585b6a','ben','p0003|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.139+00:00','labelled',14);
INSERT INTO "claims" VALUES('23a0e072338005fb7638fa35','ben','p0003|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.151+00:00','labelled',16);
INSERT INTO "claims" VALUES('877c793a81a6349111ac9c50','ben','p0002|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.159+00:00','labelled',18);
INSERT INTO "claims" VALUES('e269753ff3923b1d3e8668e6','ben','p0001|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.171+00:00','labelled',20);
INSERT INTO "claims" VALUES('2af44a47693183f7a2991575','ben','p0001|s1|b','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.179+00:00','labelled',22);
INSERT INTO "claims" VALUES('a933a3b5c34144393ad0a9a4','ben','p0002|s1|a','refusal','fc84998dc4579b44','',0,'2026-11-22T07:54:14.187+00:00','labelled',24);
CREATE TABLE grades (
	event_id INTEGER NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	rater_kind VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	p_positive FLOAT, 
	probabilities JSON, 
	prob_method VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	"order" VARCHAR NOT NULL, 
	unscored_reason VARCHAR NOT NULL, 
	seconds FLOAT, 
	rubric_hash VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	raw TEXT NOT NULL, 
	provenance JSON NOT NULL, 
	PRIMARY KEY (event_id)
);
INSERT INTO "grades" VALUES(1,'p0001|s1|a','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
INSERT INTO "grades" VALUES(2,'p0001|s1|b','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
INSERT INTO "grades" VALUES(3,'p0002|s1|a','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
INSERT INTO "grades" VALUES(4,'p0002|s1|b','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
INSERT INTO "grades" VALUES(5,'p0003|s1|a','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
INSERT INTO "grades" VALUES(6,'p0003|s1|b','refusal','baseline:lexical','model','3',4.92807453654681704158e-01,'{"1": 0.0065329140606309455, "2": 0.10244723450242427, "3": 0.3982123977822631, "4": 0.39041383797413187, "5": 0.10239361568054983}','',0,'','',NULL,'fc84998dc4579b44','2026-11-22T07:54:10.955+00:00','','{"provider": "baseline", "tool": "evenhand 0.1.0", "cues_hash": "94803d1ca47e133c"}');
CREATE TABLE invite_events (
	event_id INTEGER NOT NULL, 
	invite_id VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
INSERT INTO "invite_events" VALUES(1,'e567acd8a4db85e5','ann','made','2026-11-22T07:54:16.177+00:00');
CREATE TABLE labels (
	event_id INTEGER NOT NULL, 
	submit_id VARCHAR NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	rater_kind VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	p_positive FLOAT, 
	probabilities JSON, 
	prob_method VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	"order" VARCHAR NOT NULL, 
	unscored_reason VARCHAR NOT NULL, 
	seconds FLOAT, 
	rubric_hash VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id), 
	UNIQUE (submit_id)
);
INSERT INTO "labels" VALUES(1,'ann-0','p0003|s1|a','refusal','ann','human','1',NULL,NULL,'',0,'','',1.5,'fc84998dc4579b44','2026-11-22T07:54:14.088+00:00');
INSERT INTO "labels" VALUES(2,'ann-1','p0003|s1|b','refusal','ann','human','2',NULL,NULL,'',0,'','',2.5,'fc84998dc4579b44','2026-11-22T07:54:14.103+00:00');
INSERT INTO "labels" VALUES(3,'ann-2','p0001|s1|a','refusal','ann','human','3',NULL,NULL,'',0,'','',3.5,'fc84998dc4579b44','2026-11-22T07:54:14.111+00:00');
INSERT INTO "labels" VALUES(4,'ann-3','p0001|s1|b','refusal','ann','human','1',NULL,NULL,'',0,'','',4.5,'fc84998dc4579b44','2026-11-22T07:54:14.119+00:00');
INSERT INTO "labels" VALUES(5,'ann-4','p0002|s1|b','refusal','ann','human','2',NULL,NULL,'',0,'','',5.5,'fc84998dc4579b44','2026-11-22T07:54:14.126+00:00');
INSERT INTO "labels" VALUES(6,'ann-5','p0002|s1|a','refusal','ann','human','3',NULL,NULL,'',0,'','',6.5,'fc84998dc4579b44','2026-11-22T07:54:14.135+00:00');
INSERT INTO "labels" VALUES(7,'ben-0','p0003|s1|b','refusal','ben','human','1',NULL,NULL,'',0,'','',1.5,'fc84998dc4579b44','2026-11-22T07:54:14.141+00:00');
INSERT INTO "labels" VALUES(8,'ben-1','p0003|s1|a','refusal','ben','human','2',NULL,NULL,'',0,'','',2.5,'fc84998dc4579b44','2026-11-22T07:54:14.155+00:00');
INSERT INTO "labels" VALUES(9,'ben-2','p0002|s1|b','refusal','ben','human','3',NULL,NULL,'',0,'','',3.5,'fc84998dc4579b44','2026-11-22T07:54:14.161+00:00');
INSERT INTO "labels" VALUES(10,'ben-3','p0001|s1|a','refusal','ben','human','1',NULL,NULL,'',0,'','',4.5,'fc84998dc4579b44','2026-11-22T07:54:14.175+00:00');
INSERT INTO "labels" VALUES(11,'ben-4','p0001|s1|b','refusal','ben','human','2',NULL,NULL,'',0,'','',5.5,'fc84998dc4579b44','2026-11-22T07:54:14.183+00:00');
INSERT INTO "labels" VALUES(12,'ben-5','p0002|s1|a','refusal','ben','human','3',NULL,NULL,'',0,'','',6.5,'fc84998dc4579b44','2026-11-22T07:54:14.191+00:00');
CREATE TABLE lead_events (
	event_id INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	done_by VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
INSERT INTO "lead_events" VALUES(1,'exclude','ben','too fast','lead','2026-11-22T07:54:15.009+00:00');
CREATE TABLE login_attempts (
	event_id INTEGER NOT NULL, 
	name_key VARCHAR NOT NULL, 
	admitted INTEGER NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('secret','7e216faa0dd46df64e436afcb027a18b45a90d92d7ceb8526e9b0b6420104025');
CREATE TABLE pairs (
	pair_id VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	cells JSON NOT NULL, 
	sample_position INTEGER, 
	PRIMARY KEY (pair_id), 
	UNIQUE (position), 
	UNIQUE (sample_position)
);
INSERT INTO "pairs" VALUES('p0001',0,'{"main_category": "m0", "template_category": "t0", "prompt_a": "Argue for 0", "prompt_b": "Argue against 0", "prompt_a_group": "pro", "prompt_b_group": "con"}',0);
INSERT INTO "pairs" VALUES('p0002',1,'{"main_category": "m1", "template_category": "t1", "prompt_a": "Argue for 1", "prompt_b": "Argue against 1", "prompt_a_group": "pro", "prompt_b_group": "con"}',1);
INSERT INTO "pairs" VALUES('p0003',2,'{"main_category": "m0", "template_category": "t0", "prompt_a": "Argue for 2", "prompt_b": "Argue against 2", "prompt_a_group": "pro", "prompt_b_group": "con"}',2);
INSERT INTO "pairs" VALUES('p0004',3,'{"main_category": "m1", "template_category": "t1", "prompt_a": "Argue for 3", "prompt_b": "Argue against 3", "prompt_a_group": "pro", "prompt_b_group": "con"}',NULL);
CREATE TABLE participant_entries (
	event_id INTEGER NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	participant_id VARCHAR NOT NULL, 
	study_id VARCHAR NOT NULL, 
	session_id VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE practice_labels (
	event_id INTEGER NOT NULL, 
	submit_id VARCHAR NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	rater_kind VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	p_positive FLOAT, 
	probabilities JSON, 
	prob_method VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	"order" VARCHAR NOT NULL, 
	unscored_reason VARCHAR NOT NULL, 
	seconds FLOAT, 
	rubric_hash VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id), 
	UNIQUE (submit_id)
);
CREATE TABLE remarks (
	event_id INTEGER NOT NULL, 
	submit_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	unit_id VARCHAR NOT NULL, 
	rubric VARCHAR NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	"order" VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	rubric_hash VARCHAR NOT NULL, 
	confidence INTEGER, 
	reason VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id), 
	UNIQUE (submit_id)
);
CREATE TABLE response_attempts (
	event_id INTEGER NOT NULL, 
	subject VARCHAR NOT NULL, 
	pair_id VARCHAR NOT NULL, 
	side VARCHAR NOT NULL, 
	response TEXT NOT NULL, 
	unscored_reason VARCHAR NOT NULL, 
	provenance JSON NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE TABLE responses (
	pair_id VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	side VARCHAR NOT NULL, 
	response TEXT NOT NULL, 
	PRIMARY KEY (pair_id, subject, side)
);
INSERT INTO "responses" VALUES('p0001','s1','a','s1: for 0. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0001','s1','b','s1: against 0. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0002','s1','a','s1: for 1. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0002','s1','b','s1: against 1. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0003','s1','a','s1: for 2. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0003','s1','b','s1: against 2. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0004','s1','a','s1: for 3. Perhaps, “some” say; I can''t be sure.');
INSERT INTO "responses" VALUES('p0004','s1','b','s1: against 3. Perhaps, “some” say; I can''t be sure.');
CREATE TABLE session_events (
	event_id INTEGER NOT NULL, 
	rater_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	detail JSON NOT NULL, 
	created_at VARCHAR NOT NULL, 
	PRIMARY KEY (event_id)
);
CREATE INDEX labels_by_rater ON labels (rater_id, unit_id, rubric);
CREATE INDEX attention_labels_by_rater ON attention_labels (rater_id, unit_id, rubric);
CREATE INDEX practice_labels_by_rater ON practice_labels (rater_id, unit_id, rubric);
CREATE INDEX grades_by_rater ON grades (rater_id, rubric, rubric_hash);
CREATE INDEX remarks_by_rater ON remarks (rater_id, unit_id);
CREATE INDEX claims_by_version ON claims (version);
CREATE INDEX batch_events_by_chunk ON batch_events (chunk);
CREATE INDEX response_attempts_by_subject ON response_attempts (subject, pair_id, side);
CREATE INDEX account_events_by_name ON account_events (name);
CREATE INDEX login_attempts_by_name ON login_attempts (name_key, created_at);
CREATE INDEX invite_events_by_rater ON invite_events (rater_id);
CREATE INDEX participant_entries_by_participant ON participant_entries (participant_id);
CREATE INDEX session_events_by_rater ON session_events (rater_id);
COMMIT;
